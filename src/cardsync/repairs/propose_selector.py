"""Proposes a selector for a step that lost its element, with a confidence, or gives the reason why
there is none. Pure.

A wrong element is worse than none: "gone" is the answer where nothing is near enough, and where two
are equally near.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cardsync.repairs import snippet
from cardsync.repairs.likeness import Comparison, Likeness
from cardsync.repairs.lost_element import Wanted, identifies, seen_of, wanted
from cardsync.repairs.new_selector import selector_of
from cardsync.repairs.snippet import Element, Page

LEAST_MARGIN = 0.08
_FULL_MARGIN = 0.3
# Elements selected by a failed repair are left out. Slow selectors are compared as text only.
_MOST_COMBINED = 3


@dataclass(frozen=True)
class Lost:
    """`seen` is what was remembered of the element when its selector was verified; `refused` are
    selectors that failed for this step.
    """

    selector: str
    step_name: str
    seen: dict[str, Any] | None = None
    refused: frozenset[str] = frozenset()
    workflow: str = ""


@dataclass(frozen=True)
class Proposal:
    selector: str
    confidence: float
    margin: float
    seen: dict[str, Any]


@dataclass(frozen=True)
class Gone:
    reason: str


_FAR = Gone("no element of the snippet is near enough to the one that the step used")


def propose(markup: str, lost: Lost) -> Proposal | Gone:
    """CPU work: call it in a thread."""
    try:
        page = snippet.read(markup)
    except snippet.TooManyElements:
        return Gone(f"the snippet has more than {snippet.MOST_ELEMENTS:,} elements")
    sought = wanted(lost.selector, lost.step_name, lost.seen, lost.workflow)
    comparison = Comparison(page, sought)
    if not comparison.says_something():
        return Gone("neither the selector nor the step's name says what the element is")
    left_out = {at for selector in lost.refused for at in _selected(page, selector)}
    found = [(comparison.of(at), at) for at in _candidates(page, sought) if at not in left_out]
    found.sort(key=lambda pair: pair[0].score, reverse=True)
    return _decided(page, found, lost)


def _decided(page: Page, found: list[tuple[Likeness, int]], lost: Lost) -> Proposal | Gone:
    if not found:
        return _FAR
    best, at = found[0]
    second = next((other for other, a in found[1:] if not _nested(page, a, at)), None)
    if not best.near_enough(second):
        return _FAR
    margin = best.score - (second.score if second else 0.0)
    if margin < LEAST_MARGIN:
        return Gone("two elements of the snippet are equally near to the one that the step used")
    refused = lost.refused | {lost.selector}
    if (selector := selector_of(page, at, refused)) is None:
        return Gone("no selector selects the nearest element of the snippet alone")
    confidence = best.score * (0.85 + 0.15 * min(1.0, margin / _FULL_MARGIN))
    return Proposal(selector, round(min(confidence, 0.99), 2), round(margin, 2), seen_of(page, at))


def _candidates(page: Page, sought: Wanted) -> Iterable[int]:
    """Where nothing says what one does with the lost element: all that one presses or fills, and
    texts, if the step only looks or the lost one was an element of that tag.
    """
    for at, element in enumerate(page.elements):
        if element.hidden or element.tag in ("html", "body"):
            continue
        if sought.kinds:
            fits = element.kind in sought.kinds
        elif not (fits := element.kind is not None) and sought.tag in (None, element.tag):
            fits = (sought.reads or sought.tag is not None) and _speaks(element)
        if fits:
            yield at


def _speaks(element: Element) -> bool:
    """Whether an element that one neither presses nor fills says something by itself."""
    return element.within < 0 and (
        any(isinstance(part, str) and part.strip() for part in element.inside)
        or any(identifies(name) for name in element.attributes)
    )


def _nested(page: Page, one: int, other: int) -> bool:
    """Whether one of the two is inside the other: a click on the inner one reaches both."""
    inner, outer = max(one, other), min(one, other)
    while inner > outer:
        inner = page.elements[inner].parent
    return inner == outer


def _selected(page: Page, selector: str) -> list[int]:
    combined = sum(selector.count(sign) for sign in " >+~")
    return page.selected(selector) if combined <= _MOST_COMBINED and ":" not in selector else []
