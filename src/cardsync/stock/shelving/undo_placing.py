"""Undoes putting, moving and removing cards: reverses the changes that one entry of the activity
feed made in each place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, UndoRows
from cardsync.platform import errors, limits
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.value_types import JsonMapping
from cardsync.stock.limits import PLACES_UNDONE
from cardsync.stock.shelving.models import CardLocation

KIND: Final = "shelf.places"

_STANDING: Final = """
    SELECT given.*, coalesce(l.quantity, 0) AS now
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


async def _reversed(
    session: AsyncSession, caller: Caller, entry: JsonMapping, now: datetime
) -> Swap:
    """Return the places' copies after and before the entry. Raises ChangedSince if a place no
    longer has the copies to remove, or would have too many copies.
    """
    changes = {name: entry[name] for name in ("cards", "boxes", "slots", "more")}
    standing = await session.execute(text(_STANDING), {"seller": caller.seller_id} | changes)
    copies = {tuple(place): (now, now - more) for *place, more, now in standing}
    changed = sum(not 0 <= left <= limits.SHELVED_QUANTITY for _, left in copies.values())
    if changed:
        places = "place has" if changed == 1 else "places have"
        raise errors.ChangedSince(f"{changed} {places} different copies now")
    return swap_of(copies)


def swap_of(copies: Mapping[Any, tuple[int, int]]) -> Swap:
    """Return the images of places from pairs of copies: after the entry and before it. Pure."""
    became, was = (
        {place: {"quantity": pair[side]} if pair[side] else None for place, pair in copies.items()}
        for side in (0, 1)
    )
    return Swap(became, was)


UNDO: Final = UndoRows(PLACES, "{many} places have different copies now", read=_reversed)
