"""Remembers large price changes that the seller confirmed, so that the breaker does not stop a run
for them again.

They are written in the transaction that ends a confirmed run.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.pricing.engine import breaker

_READ = """
    SELECT coalesce(array_agg(marketplace_id), '{}') AS marketplace_id,
           coalesce(array_agg((price * 10000)::bigint), '{}') AS price,
           coalesce(array_agg(confirmed_at), '{}') AS confirmed_at
      FROM confirmed_price WHERE seller_id = :seller
"""
_FORGET = "DELETE FROM confirmed_price WHERE seller_id = :seller AND confirmed_at <= :before"
_REMEMBER = """
    INSERT INTO confirmed_price (seller_id, marketplace_id, price, confirmed_at)
    SELECT :seller, given.id, given.price / 10000.0, :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:prices AS bigint[])) AS given (id, price)
    ON CONFLICT (seller_id, marketplace_id) DO UPDATE
       SET price = excluded.price, confirmed_at = excluded.confirmed_at
"""


async def must_stop(
    session: AsyncSession,
    seller_id: int,
    priced: pl.DataFrame,
    now: datetime,
) -> bool:
    """Whether the run stops for the seller's look.

    What was confirmed is read only where the run would stop without it.
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
    """The seller said yes to these leaps; all of them are kept by one statement."""
    await session.execute(text(_FORGET), {"seller": seller_id, "before": now - breaker.REMEMBERED})
    given = {"ids": leaping["marketplace_id"].to_list(), "prices": leaping["price"].to_list()}
    await session.execute(text(_REMEMBER), {"seller": seller_id, "now": now} | given)
