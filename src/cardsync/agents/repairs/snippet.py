"""Parses a snippet of a page into its elements in document order. Pure.

The markup is parsed as browsers parse it, and nothing in the markup runs. The markup may be broken,
hostile or deep: no step recurses, and a snippet of more than MOST_ELEMENTS elements is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

MOST_ELEMENTS = 20_000
_LABEL_CHARACTERS = 120
_LABEL_NODES = 60
_ATTRIBUTE_CHARACTERS = 300
_MENU_DEPTH = 4
_NAVIGATION_DEPTH = 12
_TOPICS = 3
_UNSEEN = frozenset({"head", "script", "style", "template", "noscript", "meta", "link"})
_BEGIN_OF_TABLE = re.compile(r"\s*<(tbody|thead|tfoot|tr|td|th)\b", re.IGNORECASE)
_INSIDE = {"tr": "<table>", "td": "<table><tr>", "th": "<table><tr>"}
_NO_DISPLAY = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# The contents of these elements are choices or inputs; they do not name the element.
_FILLED = frozenset({"select", "textarea"})
_LABELED = _FILLED | {"input"}
_PRESSED = frozenset({"submit", "button", "image", "reset"})
_ROLES = {
    **dict.fromkeys(("button", "link", "menuitem", "tab", "treeitem"), "press"),
    **dict.fromkeys(("textbox", "searchbox", "spinbutton"), "write"),
    **dict.fromkeys(("checkbox", "radio", "switch"), "check"),
    **dict.fromkeys(("listbox", "combobox"), "choose"),
}


class TooManyElements(Exception):
    """The snippet has too many elements."""


@dataclass(slots=True, eq=False)
class Element:
    """`parent` is the parent's index in the page's list, -1 at the top. `nth` is the position among
    the siblings with the same tag, from 1.
    """

    key: int
    tag: str
    attributes: dict[str, str]
    parent: int
    nth: int
    hidden: bool
    # The index of the nearest enclosing element that can be pressed, filled or chosen from; -1 if
    # there is none.
    within: int
    # The element's texts and children in order; a child is its index in the list.
    inside: list[str | int] = field(default_factory=list)
    kind: str | None = None

    def opens_menu(self) -> bool:
        of = self.attributes
        return (
            self.tag == "summary"
            or of.get("aria-haspopup", "false") != "false"
            or "dropdown-toggle" in of.get("class", "")
            or "dropdown" in (of.get("data-bs-toggle", ""), of.get("data-toggle", ""))
        )


@dataclass(slots=True)
class Page:
    elements: list[Element]
    tree: LexborHTMLParser
    whole: bool
    by_key: dict[int, int]
    labels_for: dict[str, str]
    types: Counter[str] = field(default_factory=Counter)

    def label(self, at: int) -> str:
        """Return the text that an element shows, with its pictures' alternative texts,
        truncated.
        """
        texts: list[str] = []
        rest: list[str | int] = [at]
        seen = length = 0
        while rest and seen < _LABEL_NODES and length < _LABEL_CHARACTERS:
            part = rest.pop()
            seen += 1
            if isinstance(part, int):
                inner = self.elements[part]
                if part != at and (inner.hidden or inner.tag in _FILLED):
                    continue
                rest.extend(reversed(inner.inside[:_LABEL_NODES]))
                part = inner.attributes.get("alt", "") if inner.tag == "img" else ""
            if part := " ".join(part.split()):
                texts.append(part)
                length += len(part) + 1
        return " ".join(texts)[:_LABEL_CHARACTERS]

    def labels(self, at: int) -> list[str]:
        """Return every text by which a person recognizes the element."""
        element = self.elements[at]
        found = [self.label(at)] if element.tag not in _FILLED else []
        of = element.attributes
        found += [of.get(name, "") for name in ("aria-label", "title", "placeholder", "alt")]
        if element.tag == "input":
            found.append(of.get("value", "") if element.kind == "press" else "")
        if element.tag in _LABELED:
            found.append(self._around_input(element))
        if of.get("id"):
            found.append(self.labels_for.get(of["id"], ""))
        if element.tag == "dd":
            found.append(self._term_of(at))
        return [label for label in found if label.strip()]

    def _term_of(self, at: int) -> str:
        """Return the term that a definition belongs to."""
        term = -1
        for part in self.elements[self.elements[at].parent].inside[:_LABEL_NODES]:
            if part == at:
                break
            if isinstance(part, int) and self.elements[part].tag == "dt":
                term = part
        return self.label(term) if term >= 0 else ""

    def _around_input(self, element: Element) -> str:
        above = element.parent
        for _ in range(3):
            if above < 0:
                break
            if self.elements[above].tag == "label":
                return self.label(above)
            above = self.elements[above].parent
        return ""

    def menu_of(self, at: int) -> str:
        """Return the text of the control that opens the element's menu."""
        inside = at
        for _ in range(_MENU_DEPTH):
            inside, above = self.elements[inside].parent, inside
            if inside < 0:
                break
            element = self.elements[inside]
            if element.tag == "details":
                first = next((part for part in element.inside if isinstance(part, int)), above)
                return self.label(first) if self.elements[first].tag == "summary" else ""
            of = element.attributes
            if of.get("role") == "menu" or "menu" in of.get("class", "").lower():
                return of.get("aria-label", "") or self._before(inside)
        return ""

    def _before(self, at: int) -> str:
        """Return the text of the control that opens a menu, among the elements before it."""
        above = self.elements[at].parent
        opener = -1
        for part in self.elements[above].inside[:_LABEL_NODES] if above >= 0 else ():
            if part == at:
                break
            if isinstance(part, int) and self.elements[part].opens_menu():
                opener = part
        return self.label(opener) if opener >= 0 else ""

    def in_navigation(self, at: int) -> bool:
        """Return whether the element is inside <nav> or an element with the role "navigation"."""
        for _ in range(_NAVIGATION_DEPTH):
            if at < 0:
                break
            element = self.elements[at]
            if element.tag == "nav" or element.attributes.get("role") == "navigation":
                return True
            at = element.parent
        return False

    def topic(self) -> str:
        """Return the headings that name the whole page's subject."""
        places = [at for at, one in enumerate(self.elements) if one.tag == "h1" and not one.hidden]
        return " ".join(self.label(at) for at in places[:_TOPICS])

    def count_of_type(self, type_: str) -> int:
        """Return the number of inputs of a type that are not hidden."""
        if not self.types:
            self.types.update(
                element.attributes.get("type", "").lower()
                for element in self.elements
                if element.tag == "input" and not element.hidden
            )
        return self.types[type_]

    def selected(self, selector: str) -> list[int]:
        """Return the indexes of the elements that a CSS selector selects; empty for invalid CSS."""
        try:
            nodes = self.tree.css(selector)
        except (SelectolaxError, ValueError, RuntimeError):
            return []
        return [self.by_key[node.mem_id] for node in nodes if node.mem_id in self.by_key]


def kind_of(tag: str, attributes: dict[str, str]) -> str | None:
    """Return the use of an element: press, write, check, choose or file. Return None if the element
    has no use.
    """
    if (role := attributes.get("role", "").strip().lower()) in _ROLES:
        return _ROLES[role]
    match tag:
        case "button" | "a" | "summary":
            return "press"
        case "textarea":
            return "write"
        case "select":
            return "choose"
        case "input":
            return _kind_of_input(attributes.get("type", "text").strip().lower())
    names = attributes.get("class", "").lower().split()
    pressed = "onclick" in attributes or "btn" in names or "button" in names
    return "press" if pressed else None


def _kind_of_input(type_: str) -> str:
    if type_ in _PRESSED:
        return "press"
    if type_ in ("checkbox", "radio"):
        return "check"
    return "file" if type_ == "file" else "write"


def read(markup: str) -> Page:
    """Parse a snippet. Raises TooManyElements."""
    if begin := _BEGIN_OF_TABLE.match(markup):
        # A browser drops rows and cells outside a table, so a table is added.
        markup = _INSIDE.get(begin[1].lower(), "<table>") + markup
    tree = LexborHTMLParser(markup)
    page = Page([], tree, "<body" in markup.lower(), {}, {})
    if tree.root is None:
        return page
    counts: dict[tuple[int, str], int] = {}
    for node in tree.root.traverse(include_text=True):
        above = node.parent
        parent = page.by_key.get(above.mem_id, -1) if above is not None else -1
        if node.is_text_node:
            if parent >= 0:
                page.elements[parent].inside.append(node.text_content or "")
            continue
        if not node.is_element_node:
            continue
        if len(page.elements) == MOST_ELEMENTS:
            raise TooManyElements
        tag = node.tag or ""
        attributes = {
            name: (value or "")[:_ATTRIBUTE_CHARACTERS] for name, value in node.attributes.items()
        }
        _add(page, counts, node.mem_id, tag, attributes, parent)
    _note_labels(page)
    return page


def _add(
    page: Page,
    counts: dict[tuple[int, str], int],
    key: int,
    tag: str,
    attributes: dict[str, str],
    parent: int,
) -> None:
    at = len(page.elements)
    counts[parent, tag] = nth = counts.get((parent, tag), 0) + 1
    above = page.elements[parent] if parent >= 0 else None
    within = -1 if above is None else parent if above.kind else above.within
    kind = kind_of(tag, attributes)
    hidden = (above is not None and above.hidden) or _is_hidden(tag, attributes)
    element = Element(key, tag, attributes, parent, nth, hidden, within, kind=kind)
    if above is not None:
        above.inside.append(at)
    page.by_key[key] = at
    page.elements.append(element)


def _is_hidden(tag: str, attributes: dict[str, str]) -> bool:
    if tag in _UNSEEN or "hidden" in attributes:
        return True
    type_ = attributes.get("type", "").lower() if tag == "input" else ""
    if type_ in ("file", "hidden"):
        # A page may hide a file input behind its own button, but a workflow can fill the input.
        return type_ == "hidden"
    return attributes.get("aria-hidden") == "true" or bool(
        _NO_DISPLAY.search(attributes.get("style", ""))
    )


def _note_labels(page: Page) -> None:
    for at, element in enumerate(page.elements):
        if element.tag == "label" and element.attributes.get("for"):
            page.labels_for.setdefault(element.attributes["for"], page.label(at))
