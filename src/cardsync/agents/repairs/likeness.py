"""Measures from 0 to 1 how similar an element of a page is to the element that a workflow lost.
Pure.

Each text that identified the lost element (its label, its names, the step's name) is compared
separately: how many of its words the compared element has, and how much of the element's own text
they explain. The text with the best result counts. Tag, use, classes and neighbors count only a
little, because many elements share them. A word names an action ("export") or an object ("orders").
An element with a different action on the same object is excluded: "Delete export" is not the lost
"Export".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from cardsync.agents.repairs.element_words import (
    ADDRESSES,
    ElementTexts,
    View,
    addresses_of,
    is_thing,
    mean,
    role_of,
    runs_of,
    turning,
    words_of_name,
)
from cardsync.agents.repairs.label_words import (
    FORMATS,
    distinctive,
    likeness,
    named,
    weight,
)
from cardsync.agents.repairs.lost_element import (
    SPOKEN,
    STANDARD,
    WantedElement,
    around,
    identifies,
    stable,
)
from cardsync.agents.repairs.meanings import is_act
from cardsync.agents.repairs.snippet import Element, Page

_NO_USE = (None, "on", "off", "nofollow", "noopener", "noreferrer")
_POINTS = str.maketrans("", "", ".,")
_OF_LABEL, _OF_NAME, _OF_CLASS, _OF_STEP = 1.0, 0.97, 0.85, 0.85
# An element may match the step's name, but none of the lost element's own texts. Its likeness to
# the name is then multiplied by `_STEP_ALONE`. Own words that weigh less than `_SAYS` do not count.
_STEP_ALONE, _SAYS = 0.75, 0.4
# `_STEP_ALONE` is not applied if the step's name and the element's text share at least this part of
# their words.
_WHOLE = 0.95
# The exponent of the share of the lost element's words that the compared element has.
_HAD = 0.6
# The weight of an unexplained word in a name, if the element shows no text.
_IN_NAME = 0.4
# The weight of an unexplained word in a field's label, which is longer than a button's.
_IN_FIELD = 0.4
# The weight of a word that only the element's classes contain, and of a word that only the
# element's menu contains.
_IN_CLASS, _IN_MENU = 0.7, 0.8
# The weights of an element's best text and of its shortest shown text.
_BEST_TEXT, _SHOWN_TEXT = 0.85, 0.15
_IDENTITY_PART = 0.8
_LEAST, _LEAST_IDENTITY = 0.6, 0.66
# Lower limits for an element whose identity is more than `_ALONE` above that of the second best.
_LEAST_ALONE, _ALONE, _EXPLAINED_ALONE = 0.58, 0.3, 0.75
# Factors for an element with an action that no evidence explains, and for an element without the
# lost element's different action, such as "delete".
_STRANGE_ACT, _TURNED = 0.6, 0.7
# Factor for an element that opens a menu, if no evidence shows that the lost element opened one.
_OPENS = 0.85
_OPENING = frozenset({"open", "menu", "toggle", "more", "dropdown", "burger"})
# Factor for an element that shows only a number, if the lost element had a label.
_NUMBER = 0.8
# Factors for an element that has the lost element's action but not its object, and for an element
# without the action.
_NO_THING, _NO_ACT = 0.78, 0.58
# Factor for an element that shares with the lost label only words that `_SEVERAL` or more of the
# page's controls show.
_COMMON, _SEVERAL = 0.58, 3
# Factor for an element that shows a different object than the lost label does.
_OTHER_THING = 0.7
# Factors for a link in the page's navigation if the lost element was outside it, and for a link if
# the lost element was a button.
_NAVIGATES, _OTHER_ROLE = 0.85, 0.93
# Factor for a link to a parent page of the lost element's target.
_ABOVE = 0.6
# The likeness of the only element with the lost element's target, or with its standard use.
_SAME_ADDRESS, _SAME_USE = 0.85, 0.8
# The likeness of the page's only input for a file or a password, if the lost element was such an
# input.
_RARE_ALONE = 0.8
# The weight of a file format in an element's text if no evidence names a format.
_NEXT_TO_NOTHING = 0.05


@dataclass(frozen=True)
class Likeness:
    score: float
    identity: float
    # The share of the element's own words that the evidence explains.
    explained: float = 0.0
    # The average share of the words of the lost element's texts that this element has.
    whole: float = 0.0

    def near_enough(self, second: Likeness | None) -> bool:
        alone = second is None or self.identity - second.identity >= _ALONE
        if alone and self.identity >= _LEAST_ALONE and self.explained >= _EXPLAINED_ALONE:
            return True
        return self.score >= _LEAST and self.identity >= _LEAST_IDENTITY


class Comparison:
    """Compares elements of a page with one lost element."""

    def __init__(self, page: Page, wanted: WantedElement) -> None:
        self.page, self.wanted = page, wanted
        runs = {"".join(run): run for run in runs_of(wanted.step)}
        apart = (
            (part, tuple(one for word in said for one in runs.get(word, (word,))))
            for part, said in self._said()
        )
        self._views = list(dict.fromkeys(View.of(part, said) for part, said in apart if said))
        own = [view for view in self._views if view.part != _OF_STEP]
        self._known = frozenset(word for view in self._views for word in view.words)
        self._explaining = self._known | wanted.hints | frozenset(distinctive(page.topic()))
        # The distinctive words of the lost element's own texts, without the step's name.
        self._says = frozenset(word for view in own for word in view.words if weight(word) >= _SAYS)
        self._turning = turning(word for view in own for word in view.words)
        self._allowed = turning(self._known)
        self._formats = bool(self._known & FORMATS)
        self._joined = {"".join(run): run for view in self._views for run in runs_of(view.words)}
        self._opens = bool(_OPENING & self._known)
        self._only_shows = wanted.only_shows()
        self._is_button = role_of(wanted.tag, wanted.attributes) == "button"
        self._same = addresses_of(wanted.attributes)
        self._found: dict[str, dict[str, float]] = {}

    def _said(self) -> Iterable[tuple[float, tuple[str, ...]]]:
        wanted = self.wanted
        labels = [wanted.label, *(wanted.attributes.get(name, "") for name in SPOKEN)]
        # An attribute with a mail address is only an example of the expected input.
        labels = [label for label in labels if label and "@" not in label]
        if wanted.only_shows():
            # Leave out a number: the element showed it only at that time.
            labels = [label for label in labels if not label.translate(_POINTS).isdigit()]
        for label in labels:
            yield _OF_LABEL, distinctive(label)
        names = 0
        for name, value in wanted.attributes.items():
            # The checkboxes or radio buttons of a group have the same name, so it distinguishes
            # none of them.
            group = name == "name" and wanted.kinds == frozenset({"check"})
            if group and (labels or "id" in wanted.attributes):
                continue
            if identifies(name) and stable(value):
                names += 1
                yield _OF_NAME, words_of_name(name, value)
        if not names and not wanted.label:
            classes = (named(name) for name in sorted(wanted.classes) if stable(name))
            yield _OF_CLASS, tuple(word for said in classes for word in said)
        yield _OF_STEP, wanted.step

    def says_something(self) -> bool:
        """Return whether the evidence distinguishes the lost element from other elements."""
        return bool(self._views) or self._rare() is not None

    def of(self, at: int) -> Likeness:
        element = self.page.elements[at]
        identity, explained, whole = self._identity(at, element)
        if identity < _LEAST_ALONE:
            return Likeness(_IDENTITY_PART * identity, identity, explained, whole)
        score = _IDENTITY_PART * identity + (1 - _IDENTITY_PART) * mean(self._context(at, element))
        return Likeness(score, identity, explained, whole)

    def _identity(self, at: int, element: Element) -> tuple[float, float, float]:
        """Return the `identity`, `explained` and `whole` of the element's `Likeness`."""
        said = ElementTexts(self.page, at)
        sure = self._sure(element, said)
        hits: dict[str, float] = {}
        for text in said.texts:
            self._add(hits, text, 1.0)
        if (not hits and not sure) or said.turning - self._allowed:
            return 0.0, 0.0, 0.0
        self._add(hits, distinctive(element.attributes.get("class", "")), _IN_CLASS)
        self._add(hits, said.menu, _IN_MENU)
        explained = self._explained_best(said)
        views = (self._seen(view, hits, explained, said) for view in self._views)
        likest = max(max(views, default=0.0), sure)
        if self._lacks_thing(said, hits) and not sure:
            likest *= _NO_THING
        trust = self._trust(at, element, said, hits, bool(sure))
        had = sum(view.had(hits) for view in self._views) / max(1, len(self._views))
        return likest * trust, explained, had

    def _lacks_thing(self, said: ElementTexts, hits: dict[str, float]) -> bool:
        """Return whether a pressed element lacks the lost element's object, although each text of
        the lost element names the object and controls of the page show it.
        """
        return said.pressed and not self._things & hits.keys() and self._things_named

    @cached_property
    def _things(self) -> frozenset[str]:
        """The words for the lost element's object; empty if one of the element's texts names no
        object.
        """
        of = [frozenset(filter(is_thing, view.words)) for view in self._views]
        return frozenset().union(*of) if all(of) else frozenset()

    def _only_common(self, hits: dict[str, float]) -> bool:
        """Return whether the element shares only common words with the lost label, although the
        label also has rarer words.
        """
        had = self._labeled & hits.keys()
        return bool(had) and had <= self._common and not self._labeled <= self._common

    def _other_thing(self, said: ElementTexts, hits: dict[str, float]) -> bool:
        """Return whether the element lacks an object of the lost label and shows a different
        object: "invoice report" instead of "tax report".
        """
        if not any(is_thing(word) for word in self._labeled - hits.keys()):
            return False
        strange = (word for word in said.least if is_thing(word) and not self._finds(word))
        # A word that no other control has may be a synonym or a translation.
        return any(self._shown_by(word) > 1 for word in strange)

    @cached_property
    def _labeled(self) -> frozenset[str]:
        words = (word for view in self._called for word in view.words)
        return frozenset(word for word in words if weight(word) >= 1.0)

    @cached_property
    def _called(self) -> list[View]:
        """Return the lost element's labels, or its names if it has no label."""
        labels = [view for view in self._views if view.part == _OF_LABEL]
        return labels or [view for view in self._views if view.part == _OF_NAME]

    @cached_property
    def _common(self) -> frozenset[str]:
        """The words of the lost label that at least `_SEVERAL` of the page's controls show."""
        return frozenset(word for word in self._labeled if self._shown_by(word) >= _SEVERAL)

    def _shown_by(self, word: str) -> int:
        """Return how many of the page's controls show the word or a similar word."""
        return sum(any(likeness(word, other) for other in said) for said in self._controls)

    @cached_property
    def _controls(self) -> list[frozenset[str]]:
        pressed = [at for at, one in enumerate(self.page.elements) if one.kind == "press"]
        return [frozenset(distinctive(self.page.label(at))) for at in pressed]

    @cached_property
    def _acts(self) -> frozenset[str]:
        """The words for the lost element's action; empty unless each label, or each name, has such
        a word.
        """
        of = [frozenset(filter(is_act, view.words)) - _OPENING for view in self._called]
        return frozenset().union(*of) if of and all(of) else frozenset()

    @cached_property
    def _things_named(self) -> bool:
        return any(self._shown_by(thing) for thing in self._things)

    def _sure(self, element: Element, said: ElementTexts) -> float:
        """Return the likeness by target, standard use or rare input type, or 0 if none agrees."""
        rare = self._rare_alone(element) and not any(
            weight(word) >= _SAYS and not self._finds(word) for text in said.texts for word in text
        )
        return max(
            _RARE_ALONE if rare else 0.0,
            _SAME_ADDRESS if self._same_address(element) else 0.0,
            _SAME_USE if self._same_use(element) else 0.0,
        )

    def _same_address(self, element: Element) -> bool:
        """Return whether this is the page's only element with the lost element's target."""
        if not self._same or not self._same & addresses_of(element.attributes):
            return False
        return self._leading_there == 1

    def _leads_above(self, element: Element) -> bool:
        """Return whether the element's target is a parent page of the lost element's target."""
        paths = (element.attributes.get(name, "").partition("?")[0] for name in ADDRESSES)
        above = tuple(path.rstrip("/") + "/" for path in paths if path.startswith("/"))
        return any(its.startswith(above) for its in self._same)

    @cached_property
    def _leading_there(self) -> int:
        shown = (one for one in self.page.elements if not one.hidden)
        return sum(bool(self._same & addresses_of(one.attributes)) for one in shown)

    def _same_use(self, element: Element) -> bool:
        """Return whether this is the page's only element with the lost element's standard use."""
        for name in STANDARD:
            value = self.wanted.attributes.get(name)
            if value in _NO_USE or element.attributes.get(name) != value:
                continue
            return self._used[name, value] == 1
        return False

    @cached_property
    def _used(self) -> Counter[tuple[str, str | None]]:
        shown = [one for one in self.page.elements if not one.hidden]
        return Counter((name, one.attributes.get(name)) for name in STANDARD for one in shown)

    def _seen(
        self, view: View, hits: dict[str, float], explained: float, said: ElementTexts
    ) -> float:
        had, part = view.had(hits), view.part
        if part == _OF_STEP and said.pressed and self._says and not self._says & hits.keys():
            whole = len(view.words) > 1 or is_act(view.words[0])
            part *= 1.0 if whole and min(had, explained) >= _WHOLE else _STEP_ALONE
        return float(part * had**_HAD * explained)

    def _trust(
        self, at: int, element: Element, said: ElementTexts, hits: dict[str, float], same: bool
    ) -> float:
        """Return the product of all factors that count against the element, from 0 to 1. `same`
        means that other evidence, such as the same target, counts for the element.
        """
        trust = 1.0 if self._turning <= said.turning else _TURNED
        if said.pressed and self._acts and not self._acts & hits.keys() and not same:
            trust *= _NO_ACT
        if said.pressed and not same and self._only_common(hits):
            trust *= _COMMON
        if said.pressed and not same and self._other_thing(said, hits):
            trust *= _OTHER_THING
        if said.only_digits and self.wanted.label:
            trust *= _NUMBER
        if element.opens_menu() and not self._opens:
            trust *= _OPENS
        acts = [word for word in said.least if is_act(word) and weight(word) >= 1.0]
        strange = acts and not any(self._finds(word) for word in acts)
        if said.pressed and (strange or self._only_menu_acts(said, acts)) and not same:
            trust *= _STRANGE_ACT
        if self._same and not same and self._leads_above(element):
            trust *= _ABOVE
        if element.tag == "a" and self.wanted.navigates is False:
            trust *= _NAVIGATES if self.page.in_navigation(at) else 1.0
        if self._is_button and role_of(element.tag, element.attributes) == "link":
            trust *= _OTHER_ROLE
        return trust

    def _only_menu_acts(self, said: ElementTexts, shown: list[str]) -> bool:
        """Return whether the element's menu names an action that no evidence explains. An action in
        the element's own text has precedence, unless its address names the menu's action, too.
        """
        acts = [word for word in said.menu if is_act(word) and weight(word) >= 1.0]
        if not acts or any(self._finds(word) for word in acts):
            return False
        return not shown or any(likeness(one, other) for one in acts for other in said.addressed)

    def _add(self, hits: dict[str, float], said: tuple[str, ...], part: float) -> None:
        for word in said:
            for known, how in self._finds(word).items():
                hits[known] = max(hits.get(known, 0.0), part * how)
        for run in runs_of(said):
            if (joined := "".join(run)) in self._known:
                hits[joined] = max(hits.get(joined, 0.0), part)

    def _finds(self, word: str) -> dict[str, float]:
        """Return the words of the evidence that match an element's word, with their likeness."""
        if (found := self._found.get(word)) is None:
            found = {}
            for known in self._explaining:
                if how := likeness(known, word):
                    found[known] = how
            for known in self._joined.get(word, ()):
                found[known] = 1.0
            self._found[word] = found
        return found

    def _explained_best(self, said: ElementTexts) -> float:
        strange = (1.0 if said.pressed else _IN_FIELD) if said.shown else _IN_NAME
        best = max((self._explained(text, strange) for text in said.texts), default=0.0)
        if not said.least:
            return best
        return _BEST_TEXT * best + _SHOWN_TEXT * self._explained(said.least, strange)

    def _explained(self, text: tuple[str, ...], strange: float) -> float:
        """Return the share of a text that the evidence explains; `strange` weighs other words."""
        joined = {word for run in runs_of(text) if "".join(run) in self._explaining for word in run}
        whole = part = 0.0
        for word in text:
            if self._only_shows and word.isdigit():
                # The element's number changes, so it is ignored.
                continue
            how = 1.0 if word in joined else max(self._finds(word).values(), default=0.0)
            much = weight(word)
            if how:
                # The evidence explains a synonym, so the synonym's share is higher than its
                # likeness.
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
