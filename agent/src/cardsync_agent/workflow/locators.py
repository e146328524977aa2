"""Finds a pack's element on a page: its locators are tried in order, and a locator counts only if
it finds exactly one visible element.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from cardsync_agent.workflow.pack import Element, Locator, Looks

if TYPE_CHECKING:
    from playwright.sync_api import Locator as On
    from playwright.sync_api import Page

_MOST_CHARACTERS = 1_000
_MOST_VALUE = 100


@dataclass(frozen=True)
class Target:
    """The element on the page, and a description of how it was found."""

    on: On
    found_by: str


def find(page: Page, element: Element, *, hidden_too: bool = False) -> Target | None:
    """Return the element by the first locator that finds exactly one element. `hidden_too` is for
    file inputs, which pages hide behind their own button.
    """
    for locator in element.locators:
        if on := only(page, locator, hidden_too=hidden_too):
            return Target(on, said(locator))
    return None


def find_by_css(page: Page, selector: str, *, hidden_too: bool = False) -> On | None:
    """Find by a repair's selector, which must be CSS."""
    from playwright.sync_api import Error

    if ">>" in selector or not selector.strip():
        return None
    try:
        return alone(page.locator(f"css={selector}"), hidden_too=hidden_too)
    except Error as problem:
        if "selector" in str(problem).lower():  # the selector is not CSS
            return None
        raise


_OPENER = r"""
(el) => {
  const closed = el.closest('details:not([open])');
  if (closed) return closed.querySelector('summary');
  for (let at = el; at; at = at.parentElement) {
    const by_id = at.id && document.querySelector(`[aria-controls="${CSS.escape(at.id)}"]`);
    if (by_id) return by_id;
    const before = at.previousElementSibling;
    const opens = 'button[aria-haspopup], button[aria-expanded=false]';
    if (before && before.matches(opens)) return before;
  }
  return null;
}
"""


def find_in_menu(page: Page, selector: str) -> On | None:
    """Find by a repair's selector, also in a closed menu, which is opened."""
    if on := find_by_css(page, selector):
        return on
    hidden = find_by_css(page, selector, hidden_too=True)
    if hidden is None:
        return None
    opener = hidden.evaluate_handle(_OPENER).as_element()
    if opener is None or not opener.is_visible():
        return None
    # A button of a form would submit the form.
    if opener.evaluate("(el) => el.localName === 'a' || (!!el.form && el.type === 'submit')"):
        return None
    opener.click()
    return find_by_css(page, selector)


def only(page: Page, locator: Locator, *, hidden_too: bool = False) -> On | None:
    """Return the element that the locator finds if it finds exactly one element."""
    return alone(_on(page, locator), hidden_too=hidden_too)


def is_seen(page: Page, *elements: Element) -> bool:
    """Return whether any of the locators finds at least one visible element. The check is repeated
    often, so it is one request to the browser.
    """
    every = [_on(page, locator) for element in elements for locator in element.locators]
    if not every:
        return False
    return _visible(reduce(lambda one, other: one.or_(other), every)).count() > 0


def all_seen(page: Page, element: Element) -> list[On]:
    """Return all elements that any locator finds."""
    return [on for locator in element.locators for on in _on(page, locator).all()]


def alone(on: On, *, hidden_too: bool = False) -> On | None:
    """Return the visible element that a locator finds, if it finds exactly one."""
    seen = _visible(on)
    if seen.count() == 1:
        return seen
    return on if hidden_too and on.count() == 1 else None


def _visible(on: On) -> On:
    return on.filter(visible=True)


def _on(page: Page, locator: Locator) -> On:
    if locator.role is not None:
        role = cast("Any", locator.role)
        if locator.name is None:
            return page.get_by_role(role)
        return page.get_by_role(role, name=locator.name, exact=True)
    if locator.label is not None:
        return page.get_by_label(locator.label, exact=True)
    if locator.test_id is not None:
        return page.locator(f"css=[data-testid={_quoted(locator.test_id)}]")
    if locator.text is not None:
        return page.get_by_text(locator.text, exact=True)
    return page.locator(f"css={locator.css}")


def said(locator: Locator) -> str:
    """Describe a locator in words: `role button "Export"`."""
    if locator.role is not None:
        return f'role {locator.role} "{locator.name}"' if locator.name else f"role {locator.role}"
    for way in ("label", "test_id", "text", "css"):
        if value := getattr(locator, way):
            return f'{way.replace("_", " ")} "{value}"'
    return "nothing"


def description(element: Element) -> str:
    """Return one selector that contains everything known about an element, for the server's
    ranking. The selector need not select anything.
    """
    looks = _completed(element.looks, element.locators)
    parts = [looks.tag]
    # An ID is written as an attribute, since it may have any characters.
    named = (
        ("id", looks.id), ("name", looks.name), ("type", looks.type), ("role", looks.role),
        ("href", looks.href), ("title", looks.title), *_test_ids(element.locators),
    )  # fmt: skip
    parts += [f"[{name}={_quoted(value)}]" for name, value in named if value]
    parts += [f".{name}" for name in looks.classes if re.fullmatch(r"[A-Za-z_][\w-]*", name)]
    if shown := looks.text or looks.label:
        parts.append(f":has-text({_quoted(shown)})")
    if looks.label and looks.label != shown:
        parts.insert(1, f"[aria-label={_quoted(looks.label)}]")
    own = "".join(parts) or next((x.css for x in element.locators if x.css), "") or "*"
    around = f":has-text({_quoted(looks.around)}) " if looks.around else ""
    whole = around + own
    return whole if len(whole) <= _MOST_CHARACTERS else own[:_MOST_CHARACTERS]


def _completed(looks: Looks, locators: Sequence[Locator]) -> Looks:
    """Complete the property record from the locators."""
    import msgspec

    found: dict[str, str] = {}
    for locator in locators:
        for key, value in (
            ("role", locator.role), ("text", locator.name or locator.text),
            ("label", locator.label),
        ):  # fmt: skip
            if value and not getattr(looks, key):
                found.setdefault(key, value)
    return msgspec.structs.replace(looks, **found) if found else looks


def _test_ids(locators: Sequence[Locator]) -> list[tuple[str, str]]:
    return [("data-testid", x.test_id) for x in locators if x.test_id]


def _quoted(value: str) -> str:
    short = " ".join(value.split())[:_MOST_VALUE]
    return '"' + short.replace("\\", "\\\\").replace('"', '\\"') + '"'
