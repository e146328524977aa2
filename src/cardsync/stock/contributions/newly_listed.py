"""Decides how many contributed copies of a card each live card takes over after an upload. Pure.

A copy counts as a contributed one if the marketplace lists more of the card than it ever did since
the contribution was published. Each copy counts for one contribution: for the one before which the
fewest were listed, of equal ones for the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True)
class Published:
    """`listed` holds, by the id of a live card, the most copies that were listed of it."""

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
    """Return the copies that the live cards, which are all the same, take over."""
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
    """Return how many copies of the live card say nothing of the contribution: the most that were
    listed since it was published.
    """
    known = one.listed.get(card.id)
    # A file may have been exported before the contribution was published, and a card that was
    # listed then may turn out only later to be the same.
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
    """Return the places after live cards have taken contributed copies over: their copies are taken
    in the order of the places, and a retired contribution leaves none.
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
