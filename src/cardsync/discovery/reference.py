"""Reads references to cards, as buyers and assistants write them, into comparable parts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cardsync import errors, limits
from cardsync.catalog.collector_number import read_collector_number
from cardsync.catalog.one_name import folded, name_parts

GAME: Final = "pokemon"
FIELDS: Final = ("name", "set", "number", "finish")
_LONGEST = 300
# Words of so many letters begin few others.
_LONG_WORD = 4
# A number behind the name is the reference's own where it gives none: "Snivy - 001/086".
_BEHIND = re.compile(
    r"^(?P<name>.*\S)\s+-\s+#?(?P<number>[A-Za-z]{0,5}[0-9][A-Za-z0-9]*(?:/\S+)?)\s*$"
)
# Finishes as people write them, beside the marketplace's words.
_FINISHES: Final = {
    "holo": ("holofoil", "foil"),
    "foil": ("foil", "holofoil"),
    "holo foil": ("holofoil",),
    "reverse": ("reverse holofoil",),
    "reverse holo": ("reverse holofoil",),
    "reverse foil": ("reverse holofoil",),
    "rh": ("reverse holofoil",),
    "nonfoil": ("normal",),
    "non foil": ("normal",),
    "non holo": ("normal",),
    "regular": ("normal",),
    "first edition": ("1st edition", "1st edition holofoil"),
    "1st edition": ("1st edition", "1st edition holofoil"),
    "unlimited": ("unlimited", "unlimited holofoil"),
}


class Asked(NamedTuple):
    """One reference in comparable form; what was not given is empty or None.

    `words` are those of the name; `full` is the name as one text; `sets`, `code` and `finish` are
    folded; `finishes` are the marketplace's words that the given finish may mean.
    """

    query: dict[str, Any]
    words: tuple[str, ...]
    full: str
    sets: str
    code: str
    number: str
    total: str | None
    finish: str
    finishes: tuple[str, ...]
    # For a mistyped name: known words that may be meant in place of each of `words`.
    meant: tuple[tuple[str, ...], ...] = ()

    def query_text(self) -> str:
        """Return the name as PostgreSQL's tsquery: each word is the beginning of one."""
        # A name of punctuation alone has no words: no name has this one.
        return " & ".join(self._groups()) or _quoted("\\")

    def probe_text(self) -> str:
        """Return the part of it that the index is asked for: the beginnings of short words are
        those of thousands, so the names that the long words leave are held against them.
        """
        groups = self._groups()
        long = [at for at, word in enumerate(self.words) if len(word) >= _LONG_WORD]
        longest = sorted(range(len(groups)), key=lambda at: -len(self.words[at]))[:1]
        return " & ".join(groups[at] for at in long or longest) or _quoted("\\")

    def _groups(self) -> list[str]:
        words = self.meant or ((),) * len(self.words)
        return [
            "(" + " | ".join((f"{_quoted(word)}:*", *map(_quoted, others))) + ")"
            for word, others in zip(self.words, words, strict=True)
        ]

    @property
    def is_free(self) -> bool:
        """Whether the name alone was given."""
        return not (self.sets or self.number or self.finish)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def references(
    body: object,
    most: int = limits.REFERENCES,
) -> tuple[str, list[dict[str, Any]]]:
    """Return the game and the references of a body, as they were sent.

    Raises InvalidPayload, NameTooShort, TooManyReferences.
    """
    if not isinstance(body, dict):
        raise errors.InvalidPayload("the body is no object")
    game = body.get("game", GAME)
    if not isinstance(game, str):
        raise errors.InvalidPayload("game is not a text")
    cards = body.get("cards")
    if (cards is None) == (body.get("name") is None):
        raise errors.InvalidPayload("send either one reference, with its name, or a list of cards")
    if cards is None:
        one = {name: body[name] for name in FIELDS if name in body}
        _check(one, "")
        return game.strip().lower(), [one]
    if not isinstance(cards, list) or not cards:
        raise errors.InvalidPayload("cards is not a list with at least one reference")
    if len(cards) > most:
        raise errors.TooManyReferences(
            f"a request takes at most {most} references, not {len(cards)}"
        )
    for at, card in enumerate(cards):
        if not isinstance(card, dict):
            raise errors.InvalidPayload(f"cards[{at}] is no object")
        _check(card, f"cards[{at}].")
    return game.strip().lower(), cards


def _check(card: dict[str, Any], where: str) -> None:
    for name in FIELDS:
        value = card.get(name)
        if value is None and name != "name":
            continue
        if not isinstance(value, str):
            raise errors.InvalidPayload(f"{where}{name} is not a text")
        if len(value) > _LONGEST:
            raise errors.InvalidPayload(f"{where}{name} has more than {_LONGEST} characters")
    if len(card["name"].strip()) < limits.REFERENCE_NAME:
        raise errors.NameTooShort(f"{where}name has fewer than {limits.REFERENCE_NAME} characters")


def comparable(cards: Sequence[dict[str, Any]]) -> list[Asked]:
    """Return the references in comparable form, in their order."""
    return [_comparable(card) for card in cards]


def _comparable(card: dict[str, Any]) -> Asked:
    name, written = _apart(card)
    number = read_collector_number(written)
    full = name_parts(name, number).full()
    given_set, finish = card.get("set") or "", folded(card.get("finish") or "")
    return Asked(
        card,
        tuple(dict.fromkeys(full.split())),
        full,
        folded(given_set),
        given_set.strip().lower(),
        number.key,
        number.total,
        finish,
        _FINISHES.get(finish, (finish,)) if finish else (),
    )


def _apart(card: dict[str, Any]) -> tuple[str, str]:
    """Return a reference's name and number; the number may follow the name."""
    name, number = card["name"], card.get("number") or ""
    if not number.strip() and (found := _BEHIND.match(name)):
        return found["name"], found["number"]
    return name, number
