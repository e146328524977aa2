"""Undoes putting, moving and removing cards: reverses the changes that one entry of the activity
feed made in each place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors, limits
from cardsync.platform.database.row_images import Image, RowImages
from cardsync.platform.value_types import Row
from cardsync.stock.limits import PLACES_UNDONE
from cardsync.stock.shelving.models import CardLocation

KIND: Final = "shelf.places"

_STANDING: Final = """
    SELECT given.card_id, given.box, given.slot, coalesce(l.quantity, 0) AS now,
           coalesce(l.quantity, 0) - given.more AS before
      FROM unnest(CAST(:cards AS bigint[]), CAST(:boxes AS int[]), CAST(:slots AS int[]),
                  CAST(:more AS int[])) AS given (card_id, box, slot, more)
      LEFT JOIN card_location l ON l.seller_id = :seller AND l.card_id = given.card_id
           AND l.box = given.box AND l.slot = given.slot
"""
PLACES: Final = RowImages(CardLocation, "quantity", keys=("card_id", "box", "slot"))


def undo_of(changes: Sequence[tuple[int, int, int, int]]) -> dict[str, object] | None:
    """Return the undo record of changes (card, box, slot, added copies); None if there are too many
    changes to store.
    """
    more: Counter[tuple[int, int, int]] = Counter()
    for card_id, box, slot, pieces in changes:
        more[card_id, box, slot] += pieces
    places = [place for place, pieces in more.items() if pieces]
    if not 0 < len(places) <= PLACES_UNDONE:
        return None
    cards, boxes, slots = (list(column) for column in zip(*places, strict=True))
    counted = {"cards": cards, "boxes": boxes, "slots": slots}
    return {"kind": KIND, **counted, "more": [more[place] for place in places]}


async def _reversed(undoing: Undoing) -> Swap:
    """Raises ChangedSince if a place no longer has the copies or the room."""
    standing = await undoing.run(_STANDING)
    changed = sum(not 0 <= row.before <= limits.SHELVED_QUANTITY for row in standing)
    if changed:
        places = "place has" if changed == 1 else "places have"
        raise errors.ChangedSince(f"{changed} {places} different copies now")
    return swap_of(standing)


def swap_of(rows: Iterable[Row], **more: str) -> Swap:
    """Return the images of places, each with its copies after the entry and before it. Pure."""
    became: dict[Any, Image | None] = {}
    was: dict[Any, Image | None] = {}
    for *place, now, before in rows:
        became[tuple(place)] = {"quantity": now} if now else None
        was[tuple(place)] = {"quantity": before} if before else None
    return Swap(became, was, more)


UNDO: Final = UndoRows(PLACES, "{many} places have different copies now", read=_reversed)
