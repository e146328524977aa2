"""Parses a buyer's basket: references with the number of copies and the acceptable conditions and
printings. Pure.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec

from cardsync.catalog.condition import CODES
from cardsync.network.limits import BASKET_COPIES, BASKET_REFERENCES, BASKET_SELLERS
from cardsync.network.reference import GAME, CardReference, Reference, comparable, references
from cardsync.platform import errors
from cardsync.platform.described import Like
from cardsync.platform.read_json import ReadBy, read
from cardsync.platform.value_types import JsonObject

_CONDITIONS: Final = {name: code for label, code in CODES.items() for name in (label, code.lower())}


def _condition(value: object) -> str:
    code = _CONDITIONS.get(" ".join(value.lower().split())) if isinstance(value, str) else None
    if code is None:
        raise ValueError(f"must be one of {', '.join(CODES.values())}, or one of their names")
    return code


Condition = ReadBy[str, _condition, Like(str)]


class Wish(Reference):
    quantity: Annotated[int, msgspec.Meta(ge=1, le=BASKET_COPIES)] | None = None
    conditions: list[Condition] | None = None
    any_printing: bool | None = None


class Parcels(msgspec.Struct):
    max_sellers: Annotated[int, msgspec.Meta(ge=1, le=BASKET_SELLERS)] | None = None
    fewest_parcels: bool | None = None


class BasketAsked(Parcels, kw_only=True):
    cards: Annotated[list[Wish], msgspec.Meta(min_length=1, max_length=BASKET_REFERENCES)]
    """The cards to buy, at most 200"""
    game: str = GAME


class WishLine(NamedTuple):
    """One line of a basket. If `conditions` is empty, every condition is acceptable."""

    asked: CardReference
    quantity: int
    conditions: tuple[str, ...]
    any_printing: bool


class Wishes(NamedTuple):
    game: str
    cards: list[WishLine]
    max_sellers: int | None
    fewest_parcels: bool


def read_wishes(body: object) -> Wishes:
    """Return the basket of a request's body. Raises InvalidPayload, NameTooShort,
    TooManyReferences.
    """
    if read(body, JsonObject).get("cards") is None:
        raise errors.InvalidPayload("cards is missing: a basket is a list of references")
    game, cards = references(body, Wish, BASKET_REFERENCES)
    parcels = read(body, Parcels)
    wanted = [
        WishLine(
            asked,
            wish.quantity or 1,
            tuple(dict.fromkeys(wish.conditions or ())),
            bool(wish.any_printing),
        )
        for asked, (_, wish) in zip(comparable(cards), cards, strict=True)
    ]
    return Wishes(game, wanted, parcels.max_sellers, bool(parcels.fewest_parcels))
