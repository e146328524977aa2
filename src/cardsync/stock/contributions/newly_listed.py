"""Decides how many contributed copies of a card each live card takes over after an upload. Pure.

A listed copy counts as a contributed copy if the marketplace now lists more copies of the card than
at any time since the contribution was published. Each copy counts for one contribution: the one
before which the fewest copies were listed, and among equals the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True)
class Published:
    """`listed` maps a live card's id to the largest quantity listed since the publication."""

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
    """Return the copies that each live card takes over; all of `live` are the same card."""
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
    """Return how many copies of the live card were listed independently of the contribution: the
    largest quantity since its publication.
    """
    known = one.listed.get(card.id)
    # The file may have been exported before the contribution was published. A card that was listed
    # then may also be recognized as the same card only later.
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
    """Return the places after live cards have taken over contributed copies, place by place in
    order. All remaining places of a retired contribution move to its last live card.
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
