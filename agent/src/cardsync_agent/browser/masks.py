"""Covers personal data on a page for the time of a picture: the pack's masked elements, fields for
secrets, frames, and all that looks like an e-mail address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cardsync_agent.workflow.locators import all_seen
from cardsync_agent.workflow.pack import Pack

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page

# The covers lie in the top layer, above dialogs of the page.
_COVER = r"""
(masked) => {
  const mail = /[^\s@<>"',;:()]+@[^\s@<>"',;:()]+/;
  const boxes = [];
  const add = (rects) => { for (const r of rects) if (r.width && r.height) boxes.push(r); };
  const visit = (root) => {
    for (const el of root.querySelectorAll('*')) {
      if (el.shadowRoot) visit(el.shadowRoot);
      const tag = el.localName;
      if (tag === 'iframe' || tag === 'frame' || tag === 'embed' || tag === 'object'
          || (tag === 'input' && el.type === 'password')
          || ('value' in el && mail.test(String(el.value)))
          || mail.test(el.getAttribute('placeholder') || '')) {
        add([el.getBoundingClientRect()]);
        continue;
      }
      const text = el.textContent;
      if (![...el.children].some((child) => mail.test(child.textContent)) && mail.test(text)
          && text.length < 300) {
        add(el.getClientRects());  // also an address that is split over several elements
      } else for (const node of el.childNodes) {
        if (node.nodeType === 3 && mail.test(node.data)) {
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
# Finds the texts of rows and items, without titles and without what a person presses.
_DATA = r"""
() => {
  const rows = 'td, dd, li, article, p, [role=cell], [role=gridcell], [role=listitem]';
  const plain = 'button, label, th, h1, h2, h3, h4, legend, summary, nav, header, [role=button],'
    + '[role=tab], [role=menuitem]';
  return [...document.querySelectorAll('*')].filter((el) => el.closest(rows) && !el.closest(plain)
    && [...el.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
}
"""
_UNCOVER = "() => document.querySelectorAll('[data-cardsync-covers]').forEach((el) => el.remove())"


def masked_elements(page: Page, pack: Pack) -> list[ElementHandle]:
    """Return everything on the page that the pack's masked elements find and, as the page may have
    a new design, all data of rows and items.
    """
    return [*named_elements(page, pack), *(_all_data(page) if pack.masked else ())]


def named_elements(page: Page, pack: Pack) -> list[ElementHandle]:
    """Return what the pack's masked elements find alone: what they show is personal for sure."""
    return [
        handle
        for name in pack.masked
        for on in all_seen(page, pack.elements[name])
        for handle in on.element_handles()
    ]


def _all_data(page: Page) -> list[ElementHandle]:
    handles = page.evaluate_handle(_DATA).get_properties().values()
    return [element for handle in handles if (element := handle.as_element()) is not None]


@contextmanager
def covered(page: Page, masked: Sequence[ElementHandle]) -> Iterator[int]:
    """Cover it all; gives the number of covers."""
    try:
        yield int(page.evaluate(_COVER, list(masked)))
    finally:
        page.evaluate(_UNCOVER)
