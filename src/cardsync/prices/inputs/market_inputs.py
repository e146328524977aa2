"""Reads the market evidence of a seller's cards as the engine's inputs: figures, each with its
time.

The engine compares the times with the limits of each rule, and receipts store them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market.of_cards import market_of
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.prices.engine.missing_evidence import Observed, asks
from cardsync.prices.engine.rules import Rule

INPUTS: Final = (
    "sales_median",
    "sales_count",
    "sales_newest_at",
    "sales_fetched_at",
    "listings_low",
    "listings_count",
    "listings_observed_at",
    "buy_out_detected_at",
    "sales_of_network",
    "listings_of_network",
)
_OBSERVED: Final = """
    SELECT EXISTS (SELECT FROM market_look WHERE sales_at IS NOT NULL)
               OR EXISTS (SELECT FROM network_cell WHERE median IS NOT NULL),
           EXISTS (SELECT FROM market_look WHERE listings_at IS NOT NULL)
               OR EXISTS (SELECT FROM network_cell WHERE low IS NOT NULL)
"""


async def observed_for(source: Source, rules: Iterable[Rule]) -> Observed:
    """Return which kinds of evidence exist for any card. If no rule needs evidence, read
    nothing.
    """
    if not any(asks(rule) for rule in rules):
        return Observed(sales=False, listings=False)
    [observed] = await rows_of(source)(_OBSERVED, {})
    return Observed(*observed)


async def market_inputs(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    only: str,
) -> pl.DataFrame:
    """Return `id` and INPUTS of the seller's cards with market evidence; `only` is a condition over
    `card c` without bound values.
    """
    seen = await market_of(session, seller_id, now, only)
    return seen.select("id", *INPUTS)
