"""Proposes a selector for a step that lost its element, with a confidence, or returns the reason
for no proposal. Pure.

A wrong element is worse than none: the answer is "gone" if no element is near enough, or if two
elements are equally near.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from cardsync.agents.repairs import snippet
from cardsync.agents.repairs.likeness import Comparison, Likeness
from cardsync.agents.repairs.lost_element import (
    HEADINGS,
    WantedElement,
    identifies,
    seen_of,
    wanted,
)
from cardsync.agents.repairs.new_selector import selector_of
from cardsync.agents.repairs.snippet import Element, Page
from cardsync.platform.value_types import JsonObject

LEAST_MARGIN = 0.08
_FIGURE = re.compile(r"\W{0,3}\d[\d.,]*\W{0,3}")
_WHOLE_MARGIN = 0.15
_FULL_MARGIN, _EQUAL, _MOST_NEXT = 0.3, 0.05, 20
# Tags of elements that only name another element.
_NAMING = frozenset({"dt", "th", "label", "legend", "caption"})
# Elements that a refused selector selects are excluded. A selector with more combinators than this
# would be slow: it is only compared as text.
_MOST_COMBINED = 3


@dataclass(frozen=True)
class LostElement:
    """A step and the selector that lost its element. `seen` is the element's appearance when the
    selector was verified. `refused` contains the selectors that failed for this step. `page_url` is
    empty if unknown.
    """

    selector: str
    step_name: str
    seen: JsonObject | None = None
    refused: frozenset[str] = frozenset()
    workflow: str = ""
    page_url: str = ""


@dataclass(frozen=True)
class Proposal:
    selector: str
    confidence: float
    margin: float
    seen: JsonObject


@dataclass(frozen=True)
class Gone:
    reason: str


_FAR = Gone("no element in the snippet is close enough to the one the step used")


def propose(markup: str, lost: LostElement) -> Proposal | Gone:
    """Propose a selector. This is CPU work: call it in a thread."""
    try:
        page = snippet.read(markup)
    except snippet.TooManyElements:
        return Gone(f"the snippet has more than {snippet.MOST_ELEMENTS:,} elements")
    sought = wanted(lost.selector, lost.step_name, lost.seen, lost.workflow)
    comparison = Comparison(page, sought)
    if not comparison.says_something():
        return Gone("neither the selector nor the step's name says what the element is")
    left_out = {at for selector in lost.refused for at in _selected(page, selector)}
    left_out |= _leading_here(page, sought, lost.page_url)
    found = [(comparison.of(at), at) for at in _candidates(page, sought) if at not in left_out]
    found.sort(key=lambda pair: pair[0].score, reverse=True)
    return _decided(page, found, lost)


def _decided(page: Page, found: list[tuple[Likeness, int]], lost: LostElement) -> Proposal | Gone:
    if not found:
        return _FAR
    best, at = _innermost(page, found, figure=_is_figure(lost))
    second = next((other for other, a in found[1:] if not _nested(page, a, at)), None)
    if not best.near_enough(second):
        return _FAR
    margin = best.score - (second.score if second else 0.0)
    if margin < LEAST_MARGIN and (whole := _alone_whole(found)) is not None:
        (best, at), margin = whole, LEAST_MARGIN
    if margin < LEAST_MARGIN:
        return Gone("two elements in the snippet are equally close to the one the step used")
    refused = lost.refused | {lost.selector}
    if (selector := selector_of(page, at, refused)) is None:
        return Gone("no selector selects only the nearest element of the snippet")
    confidence = best.score * (0.85 + 0.15 * min(1.0, margin / _FULL_MARGIN))
    return Proposal(selector, round(min(confidence, 0.99), 2), round(margin, 2), seen_of(page, at))


def _alone_whole(found: list[tuple[Likeness, int]]) -> tuple[Likeness, int] | None:
    """Compare the elements whose scores are almost equal to the best. Return the element that has
    clearly the most words of the lost element's texts, or None if there is no such element.
    Example: of several "View" buttons, the button whose id names the card.
    """
    near = [pair for pair in found if found[0][0].score - pair[0].score < LEAST_MARGIN]
    near.sort(key=lambda pair: pair[0].whole, reverse=True)
    apart = near[0][0].whole - near[1][0].whole >= _WHOLE_MARGIN
    return near[0] if apart and near[0][0].near_enough(near[1][0]) else None


def _innermost(
    page: Page, found: list[tuple[Likeness, int]], *, figure: bool
) -> tuple[Likeness, int]:
    """Return the best element. If the best element is a text, return the innermost text that is
    about as good. With `figure`, return the number inside the text if there is exactly one.
    """
    best, at = found[0]
    if page.elements[at].kind is None:
        for other, inner in found[1:_MOST_NEXT]:
            if inner > at and other.identity >= best.identity - _EQUAL and _nested(page, inner, at):
                best, at = other, inner
        if figure and not _FIGURE.fullmatch(page.label(at)):
            inside = [i for i in page.elements[at].inside if isinstance(i, int)]
            figures = [i for i in inside if _FIGURE.fullmatch(page.label(i))]
            at = figures[0] if len(figures) == 1 else at
    return best, at


def _is_figure(lost: LostElement) -> bool:
    """Return whether the lost element showed only a number."""
    return _FIGURE.fullmatch(wanted(lost.selector, lost.step_name, lost.seen).label) is not None


def _candidates(page: Page, sought: WantedElement) -> Iterable[int]:
    """Yield the candidates, the elements to compare with the lost element.

    If the lost element's use is known, the candidates are the elements with that use. If the lost
    element was a text, the candidates are all texts. Otherwise the candidates are all controls, and
    the texts with the lost element's tag. If the tag is unknown and the step only reads, all texts
    are candidates as well.
    """
    only_shows = sought.only_shows()
    unlike = _NAMING - {sought.tag}
    if only_shows and not sought.is_heading():
        unlike |= HEADINGS
    for at, element in enumerate(page.elements):
        if element.hidden or element.tag in ("html", "body"):
            continue
        if sought.kinds:
            fits = element.kind in sought.kinds
        elif only_shows or (sought.only_reads and element.kind == "press"):
            fits = element.kind is None and element.within < 0 and _shows(element)
        elif not (fits := element.kind is not None) and sought.tag in (None, element.tag):
            fits = (sought.reads or sought.tag is not None) and _speaks(element)
        if fits and element.tag not in unlike:
            yield at


def _leading_here(page: Page, sought: WantedElement, page_url: str) -> set[int]:
    """Return the links to the current page. They do nothing, so they are no candidates, unless the
    lost element was such a link: then return none.
    """
    here = urlsplit(page_url)
    if not here.path or _leads_to(sought.attributes.get("href", ""), page_url):
        return set()
    return {
        at
        for at, element in enumerate(page.elements)
        if element.tag == "a" and _leads_to(element.attributes.get("href", ""), page_url)
    }


def _leads_to(href: str, page_url: str) -> bool:
    if not href or "?" in href or "#" in href:
        return False
    try:
        there, here = urlsplit(urljoin(page_url, href)), urlsplit(page_url)
    except ValueError:
        return False
    return (there.netloc, there.path) == (here.netloc, here.path)


def _speaks(element: Element) -> bool:
    """Return whether an element outside a control has its own text or a name."""
    return element.within < 0 and (
        _shows(element) or any(identifies(name) for name in element.attributes)
    )


def _shows(element: Element) -> bool:
    return any(isinstance(part, str) and part.strip() for part in element.inside)


def _nested(page: Page, one: int, other: int) -> bool:
    """Return whether one of the two elements is inside the other: a click on the inner element
    reaches both.
    """
    inner, outer = max(one, other), min(one, other)
    while inner > outer:
        inner = page.elements[inner].parent
    return inner == outer


def _selected(page: Page, selector: str) -> list[int]:
    combined = sum(selector.count(sign) for sign in " >+~")
    return page.selected(selector) if combined <= _MOST_COMBINED and ":" not in selector else []
