"""Decides how many contributed copies of a card each live card takes over after an upload. Pure.

Contributed copies are listed if the marketplace lists more copies of the card than at any time
since the contribution was published. Each additional copy is taken from one contribution: the
contribution before which the fewest copies were listed, and among equals the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True)
class Published:
    """A published contribution. `listed` maps the id of a live card to the largest quantity that
    was listed since the publication.
    """

    id: int
    quantity: int
    published_at: datetime
    listed: Mapping[int, int]


@dataclass(frozen=True)
class Live:
    id: int
    quantity: int
    created_at: datetime
    observed_at: datetime


class TakenOver(NamedTuple):
    contributed: int
    live: int
    copies: int


def taken(published: Iterable[Published], live: Iterable[Live]) -> list[TakenOver]:
    """Return the copies that each live card takes over. All cards of `live` are listings of the
    same card.
    """
    published = list(published)
    left = {one.id: one.quantity for one in published}
    found = []
    for card in sorted(live, key=lambda card: card.id):
        explained = 0
        for before, contributed in sorted((listed_before(one, card), one.id) for one in published):
            explained = max(explained, before)
            copies = min(left[contributed], max(0, card.quantity - explained))
            if copies:
                left[contributed] -= copies
                explained += copies
                found.append(TakenOver(contributed, card.id, copies))
    return found


def listed_before(one: Published, card: Live) -> int:
    """Return how many listed copies of the live card are not copies of the contribution: the
    largest quantity listed since its publication.
    """
    known = one.listed.get(card.id)
    # All copies count as independent if the newest file is older than the publication, or if the
    # live card is older and was matched to the same product only later.
    if card.observed_at < one.published_at or (
        known is None and card.created_at < one.published_at
    ):
        return max(known or 0, card.quantity)
    return known or 0


class Place(NamedTuple):
    card: int
    box: int
    slot: int
    quantity: int


def moved(places: Iterable[Place], takings: Iterable[TakenOver], retired: set[int]) -> list[Place]:
    """Return the places after live cards have taken over contributed copies. Copies are taken from
    the places in their order. Places that a retired contribution still has then move to the last
    live card that took over its copies.
    """
    lying = {(place.card, place.box, place.slot): place.quantity for place in places}
    after: dict[tuple[int, int, int], int] = {}
    last: dict[int, int] = {}
    for contributed, live, copies in takings:
        last[contributed] = live
        for card, box, slot in sorted(lying):
            if card != contributed or not copies:
                continue
            here = min(copies, lying[card, box, slot])
            copies -= here
            lying[card, box, slot] -= here
            after[live, box, slot] = after.get((live, box, slot), 0) + here
    for (card, box, slot), quantity in lying.items():
        place = (last[card] if card in retired else card, box, slot)
        after[place] = after.get(place, 0) + quantity
    return [Place(*place, quantity) for place, quantity in sorted(after.items()) if quantity]
