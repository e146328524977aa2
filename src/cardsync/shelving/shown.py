"""The JSON structs of shelved cards, and the functions that fill them. Pure."""

from __future__ import annotations

import msgspec

from cardsync.cards.shown import Location
from cardsync.shelving.boxes import BoxBody, CardInSlot
from cardsync.shelving.place_many import PutTogether
from cardsync.shelving.places import Shelved


class PutCards(msgspec.Struct):
    """How many cards, and of all of them how many; `first` and `last` are codes of slots.

    `truncated`: the same again puts the next.
    """

    cards: int
    quantity: int
    requested: int
    truncated: bool
    first: str | None
    last: str | None


class ShelvedCard(msgspec.Struct):
    """`location_code` is the first on the way.

    `drift`: more are on the shelves than are on hand.
    """

    card_id: int
    locations: list[Location]
    location_code: str | None
    unshelved_quantity: int
    drift: bool


class Shelves(msgspec.Struct):
    boxes: list[BoxBody]


class BoxPage(msgspec.Struct):
    box: int
    cards: list[CardInSlot]
    total: int
    page: int
    per_page: int
    total_pages: int


def box_page(box: int, page: int, per_page: int, cards: list[CardInSlot], total: int) -> BoxPage:
    return BoxPage(box, cards, total, page, per_page, -(-total // per_page))


def put_cards(done: PutTogether) -> PutCards:
    first, last = (place.code if place else None for place in (done.first, done.last))
    return PutCards(done.cards, done.quantity, done.requested, done.truncated, first, last)


def shelved_card(card: Shelved) -> ShelvedCard:
    locations = [
        Location(place.box, place.slot, place.code, quantity) for place, quantity in card.places
    ]
    first = locations[0].code if locations else None
    unshelved = max(card.on_hand - card.quantity, 0)
    return ShelvedCard(
        card.card_id,
        locations,
        first,
        unshelved,
        card.quantity > card.on_hand,
    )
