"""Proposes locators and a property record for an element that a person used. Only a locator that
finds exactly this element is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cardsync_agent.workflow.locators import all_seen, only
from cardsync_agent.workflow.pack import Element, Locator, Looks

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page

_MOST = 60
# Generated IDs and classes, which change often.
_MADE = re.compile(r"\d{4,}|[0-9a-f]{8,}|:r\w*:|^(?:css|sc|jss|emotion|svelte)-|\d[a-z]+\d")
_ROW = re.compile(r"\b(tr|li|article|dl)(?::nth-of-type\(\d+\))")
_NAME = re.compile(r"[A-Za-z_][\w-]*")

_LOOKS = r"""
(el) => {
  const short = (text) => (text || '').replace(/\s+/g, ' ').trim().slice(0, 60);
  const get = (name) => el.getAttribute(name) || '';
  const type = get('type').toLowerCase();
  const pressed = ['submit', 'button', 'reset', 'image'].includes(type);
  const roles = {button: 'button', a: 'link', select: 'combobox', textarea: 'textbox',
    summary: '', h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading'};
  const of_input = pressed ? 'button' : type === 'checkbox' ? 'checkbox'
    : type === 'radio' ? 'radio' : type === 'file' || type === 'password' ? '' : 'textbox';
  const role = get('role') || (el.localName === 'input' ? of_input : roles[el.localName] || '');
  const filled = ['input', 'select', 'textarea'].includes(el.localName);
  const label = el.labels && el.labels.length ? el.labels[0].innerText : '';
  const around = [];
  for (let above = el.parentElement, n = 0; above && n < 3; above = above.parentElement, n++) {
    const head = above.querySelector('h1,h2,h3,legend,summary');
    if (head && head !== el) { around.push(head.innerText); break; }
  }
  const path = [];
  for (let at = el; at && at.localName !== 'html'; at = at.parentElement) {
    const alike = at.parentElement
      ? [...at.parentElement.children].filter((x) => x.localName === at.localName) : [at];
    path.unshift(at.localName + (alike.length > 1 ? `:nth-of-type(${alike.indexOf(at) + 1})` : ''));
  }
  return {
    tag: el.localName, role, type, id: el.id, name: get('name'), title: get('title'),
    text: filled ? (pressed ? short(el.value) : '') : short(el.innerText),
    label: short(get('aria-label') || label || get('placeholder')),
    href: el.localName === 'a' ? get('href').split('?')[0].slice(0, 200) : '',
    classes: [...el.classList].slice(0, 6), around: short(around.join(' ')),
    test_id: get('data-testid'), path: path.join(' > '),
  };
}
"""


def propose(page: Page, handle: ElementHandle, *, shows_data: bool = False) -> Element:
    """Return an element with at least one locator, in the worst case its position in the page. The
    text of an element that `shows_data` changes, so no locator uses it.
    """
    seen: dict[str, Any] = handle.evaluate(_LOOKS)
    if shows_data:
        seen |= {
            "text": "",
            "around": "",
            "label": "" if any(map(str.isdigit, seen["label"])) else seen["label"],
        }
    # A file input may be hidden behind a button of the page.
    hidden_too = seen["type"] == "file"
    kept = []
    for locator in _candidates(seen):
        on = only(page, locator, hidden_too=hidden_too)
        if on is not None and on.evaluate("(el, other) => el === other", handle):
            kept.append(locator)
    made = {key: seen[key] for key in Looks.__struct_fields__ if key in seen}
    return Element(tuple(kept[:5]) or (Locator(css=seen["path"]),), Looks(**made))


def propose_alike(page: Page, handle: ElementHandle) -> tuple[Element, int]:
    """Return an element of the pack that finds all elements like this element, such as the cells of
    a column, and their present number.
    """
    seen: dict[str, Any] = handle.evaluate(_LOOKS)
    classes = [one for one in seen["classes"] if _NAME.fullmatch(one) and not _MADE.search(one)]
    ways = [Locator(test_id=seen["test_id"])] if seen["test_id"] else []
    ways += [Locator(css=".".join([seen["tag"], *classes]))] if classes else []
    ways.append(Locator(css=_ROW.sub(r"\1", seen["path"])))
    # The page shows personal data, so none of it is stored.
    element = Element((ways[0],), Looks(tag=seen["tag"], classes=tuple(classes)))
    return element, len(all_seen(page, element))


def _candidates(seen: dict[str, Any]) -> Iterator[Locator]:
    shown = seen["text"] or seen["label"]
    fits = shown and len(shown) < _MOST
    if seen["role"] and fits:
        yield Locator(role=seen["role"], name=seen["label"] or seen["text"])
    if seen["label"]:
        yield Locator(label=seen["label"])
    if seen["test_id"]:
        yield Locator(test_id=seen["test_id"])
    if seen["text"] and fits:
        yield Locator(text=seen["text"])
    if seen["id"] and _NAME.fullmatch(seen["id"]) and not _MADE.search(seen["id"]):
        yield Locator(css=f"#{seen['id']}")
    for name in ("name", "href"):
        value = str(seen[name])
        if value and not _MADE.search(value) and '"' not in value and "\\" not in value:
            yield Locator(css=f'{seen["tag"]}[{name}="{value}"]')
    for one in seen["classes"]:
        if _NAME.fullmatch(one) and not _MADE.search(one):
            yield Locator(css=f"{seen['tag']}.{one}")


def name_of(element: Element) -> str:
    """Return a name for the pack: `export_csv_button`."""
    looks = element.looks
    said = looks.text or looks.label or looks.name or looks.id or looks.tag
    kind = {"link": "link", "button": "button", "heading": "heading"}.get(looks.role, "")
    words = re.findall(r"[a-z0-9]+", f"{said} {kind}".lower())
    name = "_".join(words)[:50].strip("_") or "element"
    return name if name[0].isalpha() else f"element_{name}"
