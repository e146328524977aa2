"""Stores the large price changes that the seller confirmed, so that the breaker does not stop a run
for them again.

The transaction that ends a confirmed run writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import Statement, run
from cardsync.prices import standing
from cardsync.prices.engine import breaker

_READ = """
    SELECT coalesce(array_agg(marketplace_id), '{}') AS marketplace_id,
           coalesce(array_agg((price * 10000)::bigint), '{}') AS price,
           coalesce(array_agg(since), '{}') AS confirmed_at
      FROM price_decision WHERE seller_id = :seller AND kind = 'confirmed'
"""


async def must_stop(
    session: AsyncSession,
    seller_id: int,
    priced: pl.DataFrame,
    now: datetime,
) -> bool:
    """Return whether the breaker stops the run for the seller's review.

    Confirmations are read only if the run would stop without them.
    """
    leaping = breaker.leaps(priced)
    if not breaker.stops(priced, leaping):
        return False
    row = (await session.execute(text(_READ), {"seller": seller_id})).one()
    known = pl.DataFrame(dict(row._mapping), schema=breaker.CONFIRMED)
    return breaker.stops(priced, breaker.unconfirmed(leaping, known, now))


async def remember(
    session: AsyncSession,
    seller_id: int,
    leaping: pl.DataFrame,
    now: datetime,
) -> None:
    """Store the leaps that the seller confirmed, and delete expired confirmations."""
    await standing.end(session, seller_id, "confirmed", now)
    ids, prices = leaping["marketplace_id"].to_list(), leaping["price"].to_list()
    await run(session, *confirm(seller_id, ids, prices, now))


def confirm(seller_id: int, ids: Sequence[int], prices: Sequence[int], now: datetime) -> Statement:
    """Return the statement that stores prices before caps as confirmed, so that they do not stop
    later runs.
    """
    return standing.put(
        seller_id,
        "confirmed",
        ids,
        now,
        prices=prices,
        until=now + breaker.REMEMBERED,
        replaces="true",
    )
