"""Covers a page while a picture is taken: the pack's masked elements, fields, frames, texts that
look like e-mail addresses, and all texts outside controls, because any of them may name a buyer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cardsync_agent.workflow.locators import all_seen
from cardsync_agent.workflow.pack import Pack

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page

# The texts of these controls identify the page and are not covered. Labels of checkboxes, and
# controls that open a part of a list, are covered, because their texts may name a buyer.
CONTROLS = (
    "button, label:not(:has([type=checkbox], [type=radio])), nav a, thead th, input[type=submit],"
    " input[type=button], [role=button], [role=tab], [role=menuitem]"
)
# The covers are in the top layer, above dialogs of the page.
_COVER = r"""
([masked, controls]) => {
  const fields = 'input:not([type=submit], [type=button], [type=file]), select, textarea';
  const mail = /[^\s@<>"',;:()]+@[^\s@<>"',;:()]+/;
  const boxes = [];
  const add = (rects) => { for (const r of rects) if (r.width && r.height) boxes.push(r); };
  const visit = (root) => {
    for (const el of root.querySelectorAll('*')) {
      if (el.shadowRoot) visit(el.shadowRoot);
      const tag = el.localName;
      if (tag === 'iframe' || tag === 'frame' || tag === 'embed' || tag === 'object'
          || el.matches(fields) || ('value' in el && mail.test(String(el.value)))) {
        add([el.getBoundingClientRect()]);
        continue;
      }
      const text = el.textContent;
      if (![...el.children].some((child) => mail.test(child.textContent)) && mail.test(text)
          && text.length < 300) {
        add(el.getClientRects());  // also an address that is split over several elements
      } else for (const node of el.childNodes) {
        if (node.nodeType === 3 && (mail.test(node.data) || !el.closest(controls))) {
          const range = document.createRange();
          range.selectNodeContents(node);
          add(range.getClientRects());
        }
      }
    }
  };
  visit(document);
  for (const el of masked) add([el.getBoundingClientRect(), ...el.getClientRects()]);
  const layer = document.createElement('div');
  layer.setAttribute('data-cardsync-covers', '');
  const style = (el, of) => { for (const k in of) el.style.setProperty(k, of[k], 'important'); };
  style(layer, {position: 'fixed', inset: '0', width: 'auto', height: 'auto', margin: '0',
    padding: '0', border: '0', background: 'none', overflow: 'hidden', display: 'block',
    'pointer-events': 'none', 'z-index': '2147483647', opacity: '1', transform: 'none'});
  for (const r of boxes) {
    const box = document.createElement('div');
    style(box, {position: 'absolute', left: r.left - 2 + 'px', top: r.top - 2 + 'px',
      width: r.width + 4 + 'px', height: r.height + 4 + 'px', background: '#333',
      display: 'block', opacity: '1'});
    layer.append(box);
  }
  layer.popover = 'manual';
  document.documentElement.append(layer);
  layer.showPopover();
  return boxes.length;
}
"""
_UNCOVER = "() => document.querySelectorAll('[data-cardsync-covers]').forEach((el) => el.remove())"


def masked_elements(page: Page, pack: Pack) -> list[ElementHandle]:
    """Return the elements of the pack's masks, which are personal even within a control."""
    return [
        handle
        for name in pack.masked
        for on in all_seen(page, pack.elements[name])
        for handle in on.element_handles()
    ]


@contextmanager
def covered(page: Page, masked: Sequence[ElementHandle]) -> Iterator[int]:
    """Cover everything while the block runs; yield the number of covers."""
    try:
        yield int(page.evaluate(_COVER, [list(masked), CONTROLS]))
    finally:
        page.evaluate(_UNCOVER)
