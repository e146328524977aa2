"""How much an element of a page is like the one that a workflow lost: both in, a number from 0 to
1 out. Pure.

What identifies (names, addresses, labels) counts three quarters, and must speak for the element
by itself; tag, role, classes and neighbours count the rest: they are alike for many elements.
Words that nothing known of the lost element explains speak against it: "Delete export" is not the
"Export" that was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardsync.repairs.snippet import Element, Page
from cardsync.repairs.wanted import SPOKEN, Wanted, around, identifies, stable
from cardsync.repairs.words import (
    covered,
    likeness,
    strangers,
    telling,
    turning,
    without_formats,
    words,
)

_NAMED, _LABELLED, _ADDRESSED, _WORDED = 3.0, 3.0, 2.0, 1.5
_IDENTITY_PART = 0.75
LEAST_IDENTITY = 0.5
# Where little is known of the lost element, what is known must fit well.
_LEAST, _LEAST_OF_LITTLE, _LITTLE = 0.6, 0.72, 3.0
# With less than this no context brings an element near another that is near enough.
_FAR = 0.3
# The likeness of an element's identity is multiplied by these: when all its words but one are
# strange, and when it lacks the word that named the lost element's action.
_STRANGE, _TURNED = 0.5, 0.75


@dataclass(frozen=True)
class Likeness:
    score: float
    identity: float
    # How much is known that identifies, the same for every candidate of one search.
    known: float

    def near_enough(self) -> bool:
        least = _LEAST if self.known >= _LITTLE else _LEAST_OF_LITTLE
        return self.score >= least and self.identity >= LEAST_IDENTITY


class Comparison:
    """One lost element, against many."""

    def __init__(self, page: Page, wanted: Wanted) -> None:
        self.page, self.wanted = page, wanted
        self._names = {
            name: value
            for name, value in wanted.attributes.items()
            if identifies(name) and stable(value)
        }
        spoken = [wanted.attributes.get(name, "") for name in SPOKEN]
        self._label = words(wanted.label or next((text for text in spoken if text), ""))
        named = [telling(value) for value in self._names.values()]
        named += [telling(name) for name in wanted.classes if stable(name)]
        said = (telling(wanted.label), *(telling(text) for text in spoken), *named)
        self._words = frozenset().union(wanted.step, *said)
        self._turning = turning(frozenset().union(*said))

    def says_something(self) -> bool:
        """Whether anything is known by which an element could be told from others."""
        return bool(self._names or self._label or self._words)

    def of(self, at: int) -> Likeness:
        element = self.page.elements[at]
        labels = [words(label) for label in self.page.labels(at)]
        parts = [self._named(name, value, element, labels) for name, value in self._names.items()]
        if self._label:
            best = max((likeness(self._label, label) for label in labels), default=0.0)
            parts.append((_LABELLED, best))
        if self._words:
            parts.append((_WORDED, self._worded(element, labels)))
        if (identity := _mean(parts)) >= _FAR:
            identity *= self._trust(at, element)
        known = sum(weight for weight, _ in parts)
        if identity < _FAR:
            return Likeness(_IDENTITY_PART * identity, identity, known)
        score = _IDENTITY_PART * identity + (1 - _IDENTITY_PART) * _mean(self._context(at, element))
        return Likeness(score, identity, known)

    def _trust(self, at: int, element: Element) -> float:
        """From 0 to 1: how far the element's own words allow that it is the lost one."""
        labels = [telling(label) for label in self.page.labels(at)]
        named = [telling(v) for n, v in element.attributes.items() if identifies(n)]
        own = frozenset().union(*labels, *named)
        if turning(own) - turning(self._words):
            return 0.0
        trust = 1.0 if self._turning <= turning(own) else _TURNED
        if any(found and not strangers(found, self._words) for found in named):
            # One name tells all of it, whatever it shows.
            return trust
        shown = min((label for label in labels if label), key=len, default=frozenset[str]())
        strange = len(strangers(shown or own, self._words))
        common = len(shown or own) - strange
        return trust * (1 - _STRANGE * strange / (strange + max(common, 1)))

    def _named(
        self,
        name: str,
        value: str,
        element: Element,
        labels: list[frozenset[str]],
    ) -> tuple[float, float]:
        weight = _ADDRESSED if name in ("href", "action", "formaction") else _NAMED
        other = element.attributes.get(name, "")
        if other == value:
            return weight, 1.0
        if weight == _ADDRESSED and other.partition("?")[0] == value.partition("?")[0] != "":
            return weight, 0.9
        if weight == _ADDRESSED:
            value, other = value.partition("?")[0], other.partition("?")[0]
        wanted = telling(value)
        same = likeness(wanted, without_formats(telling(other), wanted))
        # An id becomes a test id, and both mirror what the element shows.
        others = [telling(v) for n, v in element.attributes.items() if n != name and identifies(n)]
        elsewhere = max(
            (likeness(wanted, without_formats(found, wanted)) for found in (*others, *labels)),
            default=0.0,
        )
        return weight, 0.9 * max(same, 0.9 * elsewhere)

    def _worded(self, element: Element, labels: list[frozenset[str]]) -> float:
        named = [telling(v) for n, v in element.attributes.items() if identifies(n) or n == "class"]
        found = frozenset().union(*labels, *named)
        if not found:
            return 0.0
        shown = min((label for label in labels if label), key=len, default=found)
        shown = without_formats(shown, self._words)
        return covered(self._words, found) * (0.4 + 0.6 * covered(shown, self._words))

    def _context(self, at: int, element: Element) -> list[tuple[float, float]]:
        wanted = self.wanted
        parts: list[tuple[float, float]] = []
        if wanted.tag:
            parts.append((1.0, float(element.tag == wanted.tag)))
        for name in {"type", "role", "accept"} & wanted.attributes.keys():
            same = element.attributes.get(name) == wanted.attributes[name]
            parts.append((1.0, float(same)))
        if wanted.kinds:
            parts.append((1.0, float(element.kind in wanted.kinds)))
        if classes := frozenset(name for name in wanted.classes if stable(name)):
            others = frozenset(element.attributes.get("class", "").split())
            parts.append((1.0, len(classes & others) / len(classes | others)))
        if wanted.around:
            parts.append((1.5, covered(wanted.around, around(self.page, at))))
        return parts or [(1.0, 1.0 if element.kind else 0.5)]


def _mean(parts: list[tuple[float, float]]) -> float:
    weights = sum(weight for weight, _ in parts)
    return sum(weight * value for weight, value in parts) / weights if weights else 0.0
