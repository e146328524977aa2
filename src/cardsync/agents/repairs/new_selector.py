"""Writes CSS that selects exactly one element of a page. Pure.

A name that a person chose (an id, a test id, a name, a label) is preferred, then a position below a
named element, then a position below the snippet's top.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cardsync.agents.repairs.lost_element import stable
from cardsync.agents.repairs.snippet import Element, Page

_PLAIN = re.compile(r"-?[A-Za-z_][\w-]*\Z", re.ASCII)
_NAMING = ("name", "aria-label", "placeholder", "href", "title", "for", "action", "accept", "alt")
_MOST_CHARACTERS = 100
_MOST_TRIED = 24
_MOST_STEPS = 12
_MOST_ABOVE = 40
_MOST_BESIDE = 200
SELECTOR_CHARACTERS = 1_000


@dataclass(frozen=True)
class _Simple:
    """A tag with attributes and classes that must all match."""

    tag: str | None
    attributes: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()

    def css(self) -> str:
        parts = [self.tag or ""]
        for name, value in self.attributes:
            if name == "id" and self.tag is None and _PLAIN.match(value):
                parts.append(f"#{value}")
            else:
                parts.append(f"[{name}={_quoted(value)}]")
        return "".join([*parts, *(f".{name}" for name in self.classes)])

    def fits(self, element: Element) -> bool:
        if self.tag is not None and element.tag != self.tag:
            return False
        of = element.attributes
        if any(of.get(name) != value for name, value in self.attributes):
            return False
        if not self.classes:
            return True
        names = of.get("class", "").split()
        return all(name in names for name in self.classes)


def selector_of(page: Page, at: int, refused: frozenset[str]) -> str | None:
    """Return a selector of this element alone; None if every such selector is refused."""
    for css in _tried(page, at):
        if css not in refused and len(css) <= SELECTOR_CHARACTERS and page.selected(css) == [at]:
            return css
    return None


def _tried(page: Page, at: int) -> Iterator[str]:
    found = list(itertools.islice(_simple(page.elements[at]), _MOST_TRIED))
    for simple in found:
        if _places(page, simple) == [at]:
            yield simple.css()
    anchor = _named_above(page, at)
    if anchor is not None:
        above, named = anchor
        for simple in found[:8]:
            if [p for p in _places(page, simple) if _is_below(page, p, above)] == [at]:
                yield f"{named} {simple.css()}"
    if (beside := _named_before(page, at)) is not None:
        yield f"{beside} + {page.elements[at].tag}"
    yield _path(page, at, anchor)


def _places(page: Page, simple: _Simple) -> list[int]:
    return [place for place, element in enumerate(page.elements) if simple.fits(element)]


def _simple(element: Element) -> Iterator[_Simple]:
    tag, of = element.tag, element.attributes
    usable = {
        name: value
        for name, value in of.items()
        if 0 < len(value) <= _MOST_CHARACTERS and stable(value) and _PLAIN.match(name)
    }
    if "id" in usable:
        yield _Simple(None, (("id", usable["id"]),))
    tests = sorted(name for name in usable if name.startswith("data-"))
    named = [name for name in (*tests, *_NAMING) if name in usable]
    for name in named:
        yield _Simple(tag, ((name, usable[name]),))
    kinds: list[tuple[str, str]] = [
        (name, usable[name]) for name in ("type", "role") if name in usable
    ]
    if element.kind == "press" and tag == "input" and "value" in usable:
        kinds.append(("value", usable["value"]))
    for pair in kinds:
        yield _Simple(tag, (pair,))
    classes = [name for name in of.get("class", "").split() if _PLAIN.match(name) and stable(name)]
    for name in classes[:6]:
        yield _Simple(tag, (), (name,))
    for two in itertools.combinations(classes[:4], 2):
        yield _Simple(tag, (), two)
    for name, pair in itertools.product(named[:3], kinds):
        yield _Simple(tag, ((name, usable[name]), pair))
    yield _Simple(tag)


def _named_above(page: Page, at: int) -> tuple[int, str] | None:
    """Return the nearest ancestor with a unique name, and its selector."""
    above = page.elements[at].parent
    for _ in range(_MOST_ABOVE):
        if above < 0:
            break
        element = page.elements[above]
        for simple in itertools.islice(_simple(element), 3):
            if simple.attributes and _places(page, simple) == [above]:
                return above, simple.css()
        above = element.parent
    return None


def _named_before(page: Page, at: int) -> str | None:
    """Return the selector of the preceding neighbor, if that has a unique name."""
    above = page.elements[at].parent
    places = [part for part in page.elements[above].inside if isinstance(part, int)][:_MOST_BESIDE]
    place = places.index(at) if above >= 0 and at in places else 0
    if not place:
        return None
    for simple in itertools.islice(_simple(page.elements[places[place - 1]]), 3):
        if simple.attributes and _places(page, simple) == [places[place - 1]]:
            return simple.css()
    return None


def _is_below(page: Page, at: int, above: int) -> bool:
    while at > above:
        at = page.elements[at].parent
    return at == above


def _path(page: Page, at: int, anchor: tuple[int, str] | None) -> str:
    """Return a selector of child steps from the named ancestor, or of the last possible steps."""
    steps: list[str] = []
    end = anchor[0] if anchor else -1
    while at >= 0 and at != end and len(steps) < _MOST_STEPS:
        element = page.elements[at]
        if element.tag in ("body", "html"):
            if page.whole:
                steps.append(element.tag)
            break
        steps.append(f"{element.tag}:nth-of-type({element.nth})")
        at = element.parent
    if anchor and at == end:
        steps.append(anchor[1])
    return " > ".join(reversed(steps))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " else f"\\{ord(c):x} " for c in escaped) + '"'
