"""Puts the cards of a selection into consecutive slots.

Only copies that are on no shelf are placed, so that a repeated request places nothing. The cards
are placed in the order of the selection; a search orders them by id. Each slot gets `per_slot`
copies, and the remaining copies of a card are placed in the next slot.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.plurals import counted
from cardsync.platform.shelf_place import Place
from cardsync.stock.cards.bulk_selection import Selection, run_picked
from cardsync.stock.cards.promoted import refuse_picked_promoted
from cardsync.stock.limits import SHELVED_AT_ONCE
from cardsync.stock.shelving.box_numbers import made_box
from cardsync.stock.shelving.undo_placing import undo_of


class PutCards(msgspec.Struct):
    """The result of placing a selection: the numbers of placed cards and copies, and the codes of
    the first and the last slot.

    If `truncated` is true, the same request again places the next cards.
    """

    cards: int
    quantity: int
    requested: int
    truncated: bool
    first: str | None
    """The code of the first slot: box and slot, joined by a hyphen"""
    last: str | None
    """The code of the last slot: box and slot, joined by a hyphen"""


_PUT = queries_of(__package__)["put_many"]


async def put_many(
    session: AsyncSession,
    caller: Caller,
    selection: Selection,
    start: Place,
    per_slot: int,
    now: datetime,
    seconds: float,
) -> PutCards:
    """Put the selected cards into slots from `start` on. Raises InvalidPayload,
    StockPromotedReload.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    await refuse_picked_promoted(session, caller.seller_id, selection)
    number, box = await made_box(session, caller.seller_id, start.box)
    room = (limits.SHELF_NUMBER - start.slot + 1) * per_slot
    values = {
        "box": number,
        "start": start.slot,
        "per_slot": per_slot,
        "most": min(SHELVED_AT_ONCE, room),
        "now": now,
    }
    found = await run_picked(session, caller, selection, _PUT, values, seconds)
    [(cards, quantity, requested, truncated, first, last, _, ids, slots, pieces)] = found
    if truncated and not cards:
        raise errors.InvalidPayload(f"there is no room for the first card after {start.code}")
    if not cards:
        return PutCards(0, 0, requested, False, None, None)
    ends = Place(box, first).code, Place(box, last).code
    note(
        session,
        caller,
        "shelf.put_many",
        f"{counted(quantity, 'copy', 'copies')} of {counted(cards, 'card', 'cards')} put in"
        f" {ends[0]} to {ends[1]}",
        now,
        undo=undo_of(
            [
                (card_id, number, slot, int(more))
                for card_id, slot, more in zip(ids, slots, pieces, strict=True)
            ]
        ),
    )
    return PutCards(cards, quantity, requested, truncated, *ends)
