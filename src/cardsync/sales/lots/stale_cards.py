"""Marks cards with outdated `lot_use` and cost, in the transaction that changes lots or orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.session import run
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.value_types import Values

_HAS_LOTS: Final = "SELECT EXISTS (SELECT FROM lot WHERE seller_id = :seller)"
# Only cards with lots are marked: a card without a lot has no cost that could be outdated.
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
    """Wait for uploads of orders that are marking cards, and block other uploads of orders until
    this transaction ends.
    """
    await locked(session, Lock.LOTS_SOLD, seller_id)


async def mark_cards(session: AsyncSession, seller_id: int, cards: Sequence[int]) -> None:
    """Mark cards whose lots have changed."""
    await lots_come(session, seller_id)
    await run(session, _CARDS, {"seller": seller_id, "cards": list(cards)})
    await mark(session, seller_id, Figure.LOTS)


async def mark_all(session: AsyncSession, seller_id: int) -> None:
    """Mark every card with lots, because the seller's costing method changed."""
    await lots_come(session, seller_id)
    await run(session, _ALL, {"seller": seller_id})
    await mark(session, seller_id, Figure.LOTS)


async def mark_sold(session: AsyncSession, found: str, values: Values) -> None:
    """Mark the cards that have lots among the `sku_id`s that the query `found` returns, and request
    a refresh. Uploads of orders wait for each other only at this request.
    """
    # A writer of lots and an upload of orders wait for each other's commit, so that the second sees
    # the first one's rows. Uploads of orders share the lock and don't wait for each other here.
    await locked(session, Lock.LOTS_SOLD, values["seller"], shared=True)
    if await session.scalar(text(_HAS_LOTS), {"seller": values["seller"]}) and await run(
        session, _SOLD.format(found=found), values
    ):
        await mark(session, values["seller"], Figure.LOTS)
