"""Marks cards whose uses and cost are out of date, in the transaction that changes lots or orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.session import run
from cardsync.platform.derived.kept_figures import Figure, mark

_HAS_LOTS: Final = "SELECT EXISTS (SELECT FROM lot WHERE seller_id = :seller)"
# Most cards of most sellers have no lot, so nothing of theirs is out of date.
_SOLD: Final = """
    INSERT INTO lot_stale (seller_id, marketplace_id)
    SELECT CAST(:seller AS bigint), sold.sku_id FROM (
        SELECT DISTINCT found.sku_id FROM ({found}) found WHERE found.sku_id IS NOT NULL) sold
     WHERE sold.sku_id IN (SELECT l.marketplace_id FROM lot l WHERE l.seller_id = :seller)
"""
_CARDS: Final = """
    INSERT INTO lot_stale (seller_id, marketplace_id)
    SELECT DISTINCT CAST(:seller AS bigint), given.card
      FROM unnest(CAST(:cards AS bigint[])) AS given (card)
"""
_ALL: Final = """
    INSERT INTO lot_stale (seller_id, marketplace_id)
    SELECT CAST(:seller AS bigint), l.marketplace_id
      FROM (SELECT DISTINCT marketplace_id FROM lot WHERE seller_id = :seller) l
"""


async def lots_come(session: AsyncSession, seller_id: int) -> None:
    """Wait for the uploads of orders that have begun to mark cards, and let others wait for this
    transaction.
    """
    await locked(session, Lock.LOTS_SOLD, seller_id)


async def mark_cards(session: AsyncSession, seller_id: int, cards: Sequence[int]) -> None:
    """Mark cards whose lots have changed."""
    await lots_come(session, seller_id)
    await run(session, _CARDS, {"seller": seller_id, "cards": list(cards)})
    await mark(session, seller_id, Figure.LOTS)


async def mark_all(session: AsyncSession, seller_id: int) -> None:
    """Mark every card with lots: the seller's costing is another one."""
    await lots_come(session, seller_id)
    await run(session, _ALL, {"seller": seller_id})
    await mark(session, seller_id, Figure.LOTS)


async def mark_sold(session: AsyncSession, found: str, values: Mapping[str, Any]) -> None:
    """Mark the cards of the items whose `sku_id` the statement `found` finds, where they have lots;
    two writers never wait for each other until the mark, at their end.
    """
    # Writers of lots and uploads of orders see each other's rows: the second waits for the first
    # one's commit. Uploads of orders don't wait for each other.
    await locked(session, Lock.LOTS_SOLD, values["seller"], shared=True)
    if await session.scalar(text(_HAS_LOTS), {"seller": values["seller"]}) and await run(
        session, _SOLD.format(found=found), values
    ):
        await mark(session, values["seller"], Figure.LOTS)
