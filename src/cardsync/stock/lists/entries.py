"""Adds a selection of cards to a list, or removes it, and counts the changes. Adding is idempotent
and stops at the list's cap.

The cap counts only cards that the caller may see. Otherwise a list that contains another member's
private cards would be full although the caller sees fewer cards than the cap.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import activity
from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.room_sql import queries_of
from cardsync.stock.cards.bulk_selection import Selection, run_picked
from cardsync.stock.cards.promoted import refuse_picked_promoted
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.lists.seller_lists import locked_list


class Added(NamedTuple):
    """The numbers of added and of selected cards; `requested` includes cards that were already on
    the list.
    """

    added: int
    requested: int
    truncated: bool


_ADD = queries_of(__package__)["add"].format(visible=VISIBLE)
_REMOVE = """
    WITH picked AS MATERIALIZED ({picked})
    DELETE FROM card_list_entry e USING picked p
     WHERE e.seller_id = :seller AND e.list_id = :list AND e.card_id = p.id
    RETURNING e.card_id
"""


async def add_cards(
    session: AsyncSession,
    caller: Caller,
    list_id: int,
    selection: Selection,
    now: datetime,
    seconds: float,
) -> Added:
    """Add the selected cards to a list. Raises NotFound, InvalidPayload, StockPromotedReload, and
    ListFull if the list has no room for any of the new cards.
    """
    await locked_list(session, caller.seller_id, list_id)
    await refuse_picked_promoted(session, caller.seller_id, selection)
    values = {"list": list_id, "cap": limits.CARDS_PER_LIST, "now": now}
    [(requested, fresh, cards)] = await run_picked(
        session,
        caller,
        selection,
        _ADD,
        values,
        seconds,
    )
    added = len(cards)
    if fresh and not added:
        raise errors.ListFull(f"the list already has {limits.CARDS_PER_LIST:,} cards and is full")
    if added:
        activity.note(
            session,
            caller,
            "list.cards_added",
            f"{added} cards to list {list_id}",
            now,
            undo={"kind": "list.cards_added", "list": list_id, "cards": cards},
        )
    return Added(added, requested, added < fresh)


async def remove_cards(
    session: AsyncSession,
    caller: Caller,
    list_id: int,
    selection: Selection,
    now: datetime,
    seconds: float,
) -> int:
    """Remove the selected cards from a list, and return the number of removed cards. Raises
    NotFound and InvalidPayload.
    """
    caller.must_be_owner()
    await locked_list(session, caller.seller_id, list_id)
    rows = await run_picked(
        session,
        caller,
        selection,
        _REMOVE,
        {"list": list_id, "now": now},
        seconds,
    )
    cards = [row.card_id for row in rows]
    removed = len(cards)
    if removed:
        activity.note(
            session,
            caller,
            "list.cards_removed",
            f"{removed} cards from list {list_id}",
            now,
            undo={"kind": "list.cards_removed", "list": list_id, "cards": cards},
        )
    return removed
