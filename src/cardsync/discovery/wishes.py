"""Reads a buyer's basket into references with the copies, conditions and printings that will do.
Pure.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cardsync import errors, limits
from cardsync.catalog.condition import CODES
from cardsync.discovery.reference import Asked, comparable, references

_CONDITIONS: Final = {name: code for label, code in CODES.items() for name in (label, code.lower())}


class Wanted(NamedTuple):
    """One line; without `conditions` every condition will do."""

    asked: Asked
    quantity: int
    conditions: tuple[str, ...]
    any_printing: bool


class Wishes(NamedTuple):
    game: str
    cards: list[Wanted]
    max_sellers: int | None
    fewest_parcels: bool


def read_wishes(body: object) -> Wishes:
    """Raises InvalidPayload, NameTooShort, TooManyReferences."""
    if isinstance(body, dict) and body.get("cards") is None:
        raise errors.InvalidPayload("cards is missing: a basket is a list of references")
    game, cards = references(body, limits.BASKET_REFERENCES)
    assert isinstance(body, dict)
    read = [
        (
            _whole(card, "quantity", f"cards[{at}].", limits.BASKET_COPIES) or 1,
            _conditions(card.get("conditions"), f"cards[{at}].conditions"),
            _flag(card, "any_printing", f"cards[{at}]."),
        )
        for at, card in enumerate(cards)
    ]
    most = _whole(body, "max_sellers", "", limits.BASKET_SELLERS)
    fewest = _flag(body, "fewest_parcels", "")
    asked = comparable(cards)
    return Wishes(
        game,
        [Wanted(one, *more) for one, more in zip(asked, read, strict=True)],
        most,
        fewest,
    )


def _whole(given: dict[str, Any], name: str, where: str, most: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise errors.InvalidPayload(f"{where}{name} is not a whole number from 1 to {most:,}")
    return value


def _flag(given: dict[str, Any], name: str, where: str) -> bool:
    value = given.get(name, False)
    if value is not None and not isinstance(value, bool):
        raise errors.InvalidPayload(f"{where}{name} is neither true nor false")
    return bool(value)


def _conditions(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise errors.InvalidPayload(f"{where} is not a list of conditions")
    found = []
    for at, one in enumerate(value):
        code = _CONDITIONS.get(" ".join(one.lower().split())) if isinstance(one, str) else None
        if code is None:
            known = ", ".join(CODES.values())
            raise errors.InvalidPayload(f"{where}[{at}] is none of {known}, nor one of their names")
        found.append(code)
    return tuple(dict.fromkeys(found))
