"""Sorts the orders of a pull session, and the items of each order, for a walk along the shelves.
Pure.

Orders are sorted by shipping type (expedited, tracked, pwe), then by the first place of their cards
on the shelves (orders without a place last), then by date (oldest first). Orders that were moved to
the end are after all others, in the sequence of the moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from cardsync.platform.shelf_place import Place

PRIORITY = {"expedited": 0, "tracked": 1, "pwe": 2}


PlaceOf = Callable[[int], Place | None]
"""Returns the place on the shelves of an item id."""


@dataclass(frozen=True)
class ToPull:
    order_id: int
    shipping_type: str
    order_date: date | None = None
    item_ids: Sequence[int] = ()
    deferred_turn: int | None = None


def work_order(orders: Iterable[ToPull], place_of: PlaceOf) -> list[int]:
    return [order.order_id for order in sorted(orders, key=lambda order: _rank(order, place_of))]


def items_in_order(item_ids: Iterable[int], place_of: PlaceOf) -> list[int]:
    """Return the item ids of one order in the sequence of their places on the shelves."""
    return sorted(item_ids, key=lambda item: (_last_without(place_of(item)), item))


def _rank(order: ToPull, place_of: PlaceOf) -> tuple[object, ...]:
    return (
        -1 if order.deferred_turn is None else order.deferred_turn,
        PRIORITY.get(order.shipping_type, len(PRIORITY)),
        min(
            (_last_without(place_of(item)) for item in order.item_ids), default=_last_without(None)
        ),
        order.order_date or date.max,
        order.order_id,
    )


def _last_without(place: Place | None) -> tuple[bool, tuple[str, int]]:
    return (True, ("", 0)) if place is None else (False, place.way)
