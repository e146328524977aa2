"""Measures from 0 to 1 how much an element of a page is like the one that a workflow lost. Pure.

Each text that identified the lost element (its label, its names, the step's name) is looked for
alone: how many of its words the element has, and how much of the element's own text they explain.
The best text counts; tag, use, classes and neighbors count a little, because they are alike for
many elements. Words that make another act of the same thing exclude an element: "Delete export" is
not the "Export" that was lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from cardsync.repairs.label_words import (
    FORMATS,
    distinctive,
    likeness,
    named,
    weight,
    without_asides,
)
from cardsync.repairs.lost_element import SPOKEN, Wanted, around, identifies, stable
from cardsync.repairs.meanings import is_act, turns
from cardsync.repairs.snippet import Element, Page

_ADDRESSES = ("href", "action", "formaction")
_OF_LABEL, _OF_NAME, _OF_CLASS, _OF_STEP = 1.0, 0.97, 0.85, 0.85
# The weight of the step's name where an element has none of the lost one's own words.
_STEP_ALONE, _SAYS = 0.75, 0.4
# From this likeness on the step's name counts in full, if the element shows nothing else.
_WHOLE = 0.95
# The exponent of the share of the lost element's words that the element has.
_HAD = 0.6
# The weight of a strange word of a name where the element shows no text.
_IN_NAME = 0.4
# The same for the label of a field, which says more than a button's.
_IN_FIELD = 0.4
# The weights of a word that is only in the element's classes, and of one that only its menu shows.
_IN_CLASS, _IN_MENU = 0.7, 0.8
# The parts of what an element says: its best text, and what it shows.
_BEST_TEXT, _SHOWN_TEXT = 0.85, 0.15
_IDENTITY_PART = 0.8
_LEAST, _LEAST_IDENTITY = 0.6, 0.66
# These lower limits hold where nothing else is like the lost element.
_LEAST_ALONE, _ALONE, _EXPLAINED_ALONE = 0.58, 0.3, 0.75
# The likeness of an element's identity is multiplied by these: when it shows an act that nothing
# known explains, and when it lacks the word that named the lost element's act.
_STRANGE_ACT, _TURNED = 0.6, 0.7
# The same for an element that opens a menu, where nothing says that the lost one did.
_OPENS = 0.85
_OPENING = frozenset({"open", "menu", "toggle", "more", "dropdown", "burger"})
# The weight of being the only input for a file, or for a password.
_RARE_ALONE = 0.8
# The weight of a kind of file where nothing known names one.
_NEXT_TO_NOTHING = 0.05


@dataclass(frozen=True)
class Likeness:
    score: float
    identity: float
    # The part of what the element says that known words explain.
    explained: float = 0.0

    def near_enough(self, second: Likeness | None) -> bool:
        alone = second is None or self.identity - second.identity >= _ALONE
        if alone and self.identity >= _LEAST_ALONE and self.explained >= _EXPLAINED_ALONE:
            return True
        return self.score >= _LEAST and self.identity >= _LEAST_IDENTITY


@dataclass(frozen=True)
class _View:
    """One text that identified the lost element, and what it counts."""

    part: float
    words: tuple[str, ...]
    weights: float

    @classmethod
    def of(cls, part: float, said: tuple[str, ...]) -> _View:
        return cls(part, said, sum(weight(word) for word in set(said)))

    def had(self, hits: dict[str, float]) -> float:
        """The part of the words that an element has."""
        return sum(hits.get(word, 0.0) * weight(word) for word in set(self.words)) / self.weights


class _Said:
    """Everything that an element of the page says; `least` is the shortest of what it shows."""

    def __init__(self, page: Page, at: int) -> None:
        self._page, self._at = page, at
        self._element = element = page.elements[at]
        labels = (distinctive(without_asides(label)) for label in page.labels(at))
        self.shown = [said for said in labels if not all(map(str.isdigit, said))]
        names = (_name(name, v) for name, v in element.attributes.items() if identifies(name))
        self.texts = [*self.shown, *(said for said in names if said)]
        self.pressed = element.kind == "press"
        self.least = min(self.shown, key=len, default=())

    @cached_property
    def menu(self) -> tuple[str, ...]:
        return distinctive(self._page.menu_of(self._at))

    @cached_property
    def turning(self) -> frozenset[int]:
        addresses = [distinctive(self._element.attributes.get(name, "")) for name in _ADDRESSES]
        return _turning(word for said in (*self.texts, *addresses, self.menu) for word in said)


class Comparison:
    """One lost element, against many."""

    def __init__(self, page: Page, wanted: Wanted) -> None:
        self.page, self.wanted = page, wanted
        runs = {"".join(run): run for run in _runs(wanted.step)}
        apart = (
            (part, tuple(one for word in said for one in runs.get(word, (word,))))
            for part, said in self._said()
        )
        self._views = list(dict.fromkeys(_View.of(part, said) for part, said in apart if said))
        own = [view for view in self._views if view.part != _OF_STEP]
        self._known = frozenset(word for view in self._views for word in view.words)
        self._explaining = self._known | wanted.hints
        # The words that say something and are not only the step's.
        self._says = frozenset(word for view in own for word in view.words if weight(word) >= _SAYS)
        self._turning = _turning(word for view in own for word in view.words)
        self._allowed = _turning(self._known)
        self._formats = bool(self._known & FORMATS)
        self._joined = {"".join(run): run for view in self._views for run in _runs(view.words)}
        self._opens = bool(_OPENING & self._known)
        self._found: dict[str, dict[str, float]] = {}

    def _said(self) -> Iterable[tuple[float, tuple[str, ...]]]:
        wanted = self.wanted
        labels = [wanted.label, *(wanted.attributes.get(name, "") for name in SPOKEN)]
        # An address of mail is an example of what to write.
        labels = [label for label in labels if label and "@" not in label]
        for label in labels:
            yield _OF_LABEL, distinctive(label)
        names = 0
        for name, value in wanted.attributes.items():
            # Boxes and radio buttons of a group have one name.
            group = name == "name" and wanted.kinds == frozenset({"check"})
            if group and (labels or "id" in wanted.attributes):
                continue
            if identifies(name) and stable(value):
                names += 1
                yield _OF_NAME, _name(name, value)
        if not names and not wanted.label:
            classes = (named(name) for name in sorted(wanted.classes) if stable(name))
            yield _OF_CLASS, tuple(word for said in classes for word in said)
        yield _OF_STEP, wanted.step

    def says_something(self) -> bool:
        """Whether anything is known that distinguishes an element from others."""
        return bool(self._views) or self._rare() is not None

    def of(self, at: int) -> Likeness:
        element = self.page.elements[at]
        identity, explained = self._identity(at, element)
        if identity < _LEAST_ALONE:
            return Likeness(_IDENTITY_PART * identity, identity, explained)
        score = _IDENTITY_PART * identity + (1 - _IDENTITY_PART) * _mean(self._context(at, element))
        return Likeness(score, identity, explained)

    def _identity(self, at: int, element: Element) -> tuple[float, float]:
        """The likeness of what identifies, and the part of what the element says that is known."""
        said = _Said(self.page, at)
        rare = self._rare_alone(element) and not any(
            weight(word) >= _SAYS and not self._finds(word) for text in said.texts for word in text
        )
        hits: dict[str, float] = {}
        for text in said.texts:
            self._add(hits, text, 1.0)
        if (not hits and not rare) or said.turning - self._allowed:
            return 0.0, 0.0
        self._add(hits, distinctive(element.attributes.get("class", "")), _IN_CLASS)
        self._add(hits, said.menu, _IN_MENU)
        explained = self._explained_best(said)
        likest = max((self._seen(view, hits, explained, said) for view in self._views), default=0.0)
        if rare:
            likest = max(likest, _RARE_ALONE)
        return likest * self._trust(element, said), explained

    def _seen(
        self,
        view: _View,
        hits: dict[str, float],
        explained: float,
        said: _Said,
    ) -> float:
        had, part = view.had(hits), view.part
        if part == _OF_STEP and said.pressed and self._says and not self._says & hits.keys():
            whole = len(view.words) > 1 or is_act(view.words[0])
            part *= 1.0 if whole and min(had, explained) >= _WHOLE else _STEP_ALONE
        return float(part * had**_HAD * explained)

    def _trust(self, element: Element, said: _Said) -> float:
        """From 0 to 1: how far an element's acts allow that it is the lost one."""
        trust = 1.0 if self._turning <= said.turning else _TURNED
        if element.opens_menu() and not self._opens:
            trust *= _OPENS
        acts = [word for word in said.least if is_act(word) and weight(word) >= 1.0]
        if said.pressed and acts and not any(self._finds(word) for word in acts):
            trust *= _STRANGE_ACT
        return trust

    def _add(self, hits: dict[str, float], said: tuple[str, ...], part: float) -> None:
        for word in said:
            for known, how in self._finds(word).items():
                hits[known] = max(hits.get(known, 0.0), part * how)
        for run in _runs(said):
            if (joined := "".join(run)) in self._known:
                hits[joined] = max(hits.get(joined, 0.0), part)

    def _finds(self, word: str) -> dict[str, float]:
        """The known words that a word of an element finds, and how well."""
        if (found := self._found.get(word)) is None:
            found = {}
            for known in self._explaining:
                if how := likeness(known, word):
                    found[known] = how
            for known in self._joined.get(word, ()):
                found[known] = 1.0
            self._found[word] = found
        return found

    def _explained_best(self, said: _Said) -> float:
        strange = (1.0 if said.pressed else _IN_FIELD) if said.shown else _IN_NAME
        best = max((self._explained(text, strange) for text in said.texts), default=0.0)
        if not said.least:
            return best
        return _BEST_TEXT * best + _SHOWN_TEXT * self._explained(said.least, strange)

    def _explained(self, text: tuple[str, ...], strange: float) -> float:
        """The part of a text that known words explain; what one strange word counts is given."""
        joined = {word for run in _runs(text) if "".join(run) in self._explaining for word in run}
        whole = part = 0.0
        for word in text:
            how = 1.0 if word in joined else max(self._finds(word).values(), default=0.0)
            much = weight(word)
            if how:
                # Another word for the same is not strange.
                part += much * (1 + how) / 2
            elif word in FORMATS:
                much = 1.0 if self._formats else _NEXT_TO_NOTHING
            elif not (strange < 1 and word.isdigit()):
                much *= strange
            else:
                # A number distinguishes one field from another.
                much = 1.0
            whole += much
        return part / whole if whole else 0.0

    def _rare(self) -> str | None:
        if self.wanted.kinds == frozenset({"file"}):
            return "file"
        return "password" if self.wanted.attributes.get("type") == "password" else None

    def _rare_alone(self, element: Element) -> bool:
        if (rare := self._rare()) is None or element.attributes.get("type", "").lower() != rare:
            return False
        return self.page.count_of_type(rare) == 1

    def _context(self, at: int, element: Element) -> list[tuple[float, float]]:
        wanted = self.wanted
        parts: list[tuple[float, float]] = []
        if wanted.tag:
            parts.append((0.5, float(element.tag == wanted.tag)))
        for name in {"type", "role", "accept"} & wanted.attributes.keys():
            same = element.attributes.get(name) == wanted.attributes[name]
            parts.append((1.0, float(same)))
        if wanted.kinds:
            parts.append((1.0, float(element.kind in wanted.kinds)))
        if classes := frozenset(name for name in wanted.classes if stable(name)):
            others = frozenset(element.attributes.get("class", "").split())
            parts.append((1.0, len(classes & others) / len(classes | others)))
        if wanted.around:
            near = around(self.page, at)
            shared = sum(any(likeness(word, other) for other in near) for word in wanted.around)
            parts.append((1.5, shared / len(wanted.around)))
        return parts or [(1.0, 1.0 if element.kind else 0.5)]


def _name(name: str, value: str) -> tuple[str, ...]:
    return _address(value) if name in _ADDRESSES else named(value)


def _address(value: str) -> tuple[str, ...]:
    """The distinctive words of an address's last part, and of the one before if it names no
    thing."""
    parts = [part for part in value.partition("?")[0].replace("#", "/").split("/") if part]
    said: tuple[str, ...] = ()
    for part in parts[:-3:-1]:
        said = (*named(part), *said)
        if any(weight(word) >= 1.0 and not is_act(word) for word in said):
            break
    return said


def _turning(said: Iterable[str]) -> frozenset[int]:
    return frozenset(meaning for word in said for meaning in turns(word))


def _runs(said: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """Two and three words in a row, which names often join to one."""
    for length in (2, 3):
        for begin in range(len(said) - length + 1):
            yield said[begin : begin + length]


def _mean(parts: list[tuple[float, float]]) -> float:
    weights = sum(weight for weight, _ in parts)
    return sum(weight * value for weight, value in parts) / weights if weights else 0.0
