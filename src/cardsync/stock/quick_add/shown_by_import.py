"""Marks quick-add entries as listed when an import has their copies, and moves their places to the
live cards. Runs in the import's last transaction.

A pending entry is listed if an observation newer than the entry's file has at least the quantity
before the file plus the entry's quantity. The place of a listed entry is added to its live card as
soon as that card exists.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note_by
from cardsync.agents.seller_state.state import locked
from cardsync.platform import limits
from cardsync.stock.quick_add.models import QuickAdd
from cardsync.stock.quick_add.note_changes import note_waiting
from cardsync.stock.quick_add.served_entries import SAME_CARD
from cardsync.stock.quick_add.settle import end

_OPEN = """
    SELECT EXISTS (SELECT FROM quick_add
     WHERE seller_id = :seller
       AND (status = 'pending' OR (status = 'listed' AND card_id IS NULL)))
"""
_SEEN = f"""
    SELECT DISTINCT ON (q.id) q.id AS entry, c.id AS card,
           c.quantity >= q.quantity + coalesce(q.quantity_before, 0)
             AND c.observed_at > q.served_at AS shows
      FROM quick_add q LEFT JOIN product p ON p.id = q.product_id JOIN card c ON {SAME_CARD}
     WHERE q.seller_id = :seller AND NOT c.gone
       AND (q.status = 'pending' OR (q.status = 'listed' AND q.card_id IS NULL))
     ORDER BY q.id, c.id
"""
_PLACE = """
    INSERT INTO card_location AS l (seller_id, card_id, box, slot, quantity)
    VALUES (:seller, :card, :box, :slot, :quantity)
    ON CONFLICT (seller_id, card_id, box, slot)
       DO UPDATE SET quantity = least(l.quantity + excluded.quantity, :most)
"""


async def note_shown(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Mark the entries that the import lists as listed. For a seller without open entries, this
    costs one index read.
    """
    if not await session.scalar(text(_OPEN), {"seller": seller_id}):
        return
    await locked(session, seller_id)
    seen = {row.entry: row for row in await session.execute(text(_SEEN), {"seller": seller_id})}
    if not seen:
        return
    query = (
        select(QuickAdd)
        .where(QuickAdd.seller_id == seller_id, QuickAdd.id.in_(list(seen)))
        .order_by(QuickAdd.id)
        .execution_options(populate_existing=True)
    )
    listed = 0
    for entry in await session.scalars(query):
        row = seen[entry.id]
        if entry.status != "listed" and row.shows:
            end(entry, "listed", "import", now)
            listed += 1
        if entry.status == "listed" and entry.card_id is None:
            entry.card_id = row.card
            if entry.box is not None:
                place = {"box": entry.box, "slot": entry.slot, "quantity": entry.quantity}
                named = {"seller": seller_id, "card": row.card, "most": limits.SHELVED_QUANTITY}
                await session.execute(text(_PLACE), place | named)
    if listed:
        summary = f"{listed} listings confirmed by the import"
        note_by(session, seller_id, "sync", "quick_add.listed", summary, now)
        await note_waiting(session, seller_id, now)
