"""Collects the words of an element of a page: its labels, its names and its address. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from cardsync.agents.repairs.label_words import (
    aside,
    distinctive,
    named,
    weight,
    without_asides,
)
from cardsync.agents.repairs.lost_element import identifies
from cardsync.agents.repairs.meanings import is_act, turns
from cardsync.agents.repairs.snippet import Page

ADDRESSES = ("href", "action", "formaction")


@dataclass(frozen=True)
class View:
    """The words of one text that identified the lost element; `part` is the text's weight."""

    part: float
    words: tuple[str, ...]
    weights: float

    @classmethod
    def of(cls, part: float, said: tuple[str, ...]) -> View:
        return cls(part, said, sum(weight(word) for word in set(said)))

    def had(self, hits: dict[str, float]) -> float:
        """Return the weighted share of these words that a compared element has."""
        return sum(hits.get(word, 0.0) * weight(word) for word in set(self.words)) / self.weights


class ElementTexts:
    """All texts of an element of the page. `least` is the shortest text that the page shows."""

    def __init__(self, page: Page, at: int) -> None:
        self._page, self._at = page, at
        self._element = element = page.elements[at]
        labels = page.labels(at)
        bare = [distinctive(without_asides(label)) for label in labels]
        self.shown = [said for said in bare if not all(map(str.isdigit, said))]
        asides = (said for label in labels if (said := distinctive(aside(label))))
        names = (
            words_of_name(name, v) for name, v in element.attributes.items() if identifies(name)
        )
        self.texts = [*self.shown, *asides, *(said for said in names if said)]
        self.pressed = element.kind == "press"
        self.only_digits = any(bare) and not self.shown
        self.least = min(self.shown, key=len, default=())

    @cached_property
    def menu(self) -> tuple[str, ...]:
        return distinctive(self._page.menu_of(self._at))

    @cached_property
    def addressed(self) -> tuple[str, ...]:
        """The words of the element's target addresses."""
        found = (distinctive(self._element.attributes.get(name, "")) for name in ADDRESSES)
        return tuple(word for said in found for word in said)

    @cached_property
    def turning(self) -> frozenset[int]:
        return turning(word for said in (*self.texts, self.addressed, self.menu) for word in said)


def role_of(tag: str | None, attributes: Mapping[str, str]) -> str:
    """Return the element's role: the value of the attribute, else the role of a button or link,
    else an empty text.
    """
    if tag == "input" and attributes.get("type") in ("submit", "button", "image"):
        return "button"
    return attributes.get("role") or {"button": "button", "a": "link"}.get(tag or "", "")


def addresses_of(attributes: Mapping[str, str]) -> frozenset[str]:
    """Return an element's target paths with each number as 0, without queries and fragments."""
    found = (attributes.get(name, "") for name in ADDRESSES)
    return frozenset(
        re.sub(r"\d+", "0", value)
        for value in found
        if value.count("/") and not set("?#") & set(value)
    )


def words_of_name(name: str, value: str) -> tuple[str, ...]:
    return _address(value) if name in ADDRESSES else named(value)


def _address(value: str) -> tuple[str, ...]:
    """Return the distinctive words of an address's last part; if these name no object, also the
    words of the part before it.
    """
    parts = [part for part in value.partition("?")[0].replace("#", "/").split("/") if part]
    said: tuple[str, ...] = ()
    for part in parts[:-3:-1]:
        said = (*named(part), *said)
        if any(weight(word) >= 1.0 and not is_act(word) for word in said):
            break
    return said


def turning(said: Iterable[str]) -> frozenset[int]:
    return frozenset(meaning for word in said for meaning in turns(word))


def runs_of(said: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """Yield each sequence of two or three words, which names in markup often join to one word."""
    for length in (2, 3):
        for begin in range(len(said) - length + 1):
            yield said[begin : begin + length]


def is_thing(word: str) -> bool:
    return weight(word) >= 1.0 and not is_act(word)


def mean(parts: list[tuple[float, float]]) -> float:
    weights = sum(weight for weight, _ in parts)
    return sum(weight * value for weight, value in parts) / weights if weights else 0.0
