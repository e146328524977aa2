"""The market as it was known at earlier moments, for a backtest: cards' products and cells and one
moment after the other come in; the evidence that a run of that moment would have read comes out.

A product's newest look up to the moment counts: its newest snapshot of listings, and the sales that
were there when its sales were last looked at. The past of the network is not kept, so it has no part.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.database.copy import copy_chunks, frame_of
from cardsync.market.newest import SUMS, microseconds, sum_up
from cardsync.market.of_cards import (
    NO_NETWORK,
    Market,
    buy_outs_of,
    joined,
    the_market,
)

_BEGIN: Final = "CREATE TEMP TABLE past_product (product_id bigint PRIMARY KEY) ON COMMIT DROP"
_NEW: Final = "INSERT INTO past_product SELECT unnest(CAST(:new AS bigint[]))"
# Products that are new here, and those that were looked at since the moment before.
_LOOKS: Final = """
    SELECT p.product_id, s.at AS sales_at, l.at AS listings_at
      FROM (SELECT unnest(CAST(:new AS bigint[])) AS product_id
             UNION
            SELECT m.product_id FROM market_listing m
              JOIN past_product k ON k.product_id = m.product_id
             WHERE m.observed_at > CAST(:after AS timestamptz) AND m.observed_at <= :at
             UNION
            SELECT m.product_id FROM market_sales_look m
              JOIN past_product k ON k.product_id = m.product_id
             WHERE m.looked_at > CAST(:after AS timestamptz) AND m.looked_at <= :at) p
      LEFT JOIN LATERAL (
           SELECT looked_at AS at FROM market_sales_look
            WHERE product_id = p.product_id AND looked_at <= :at
            ORDER BY looked_at DESC LIMIT 1) s ON true
      LEFT JOIN LATERAL (
           SELECT observed_at AS at FROM market_listing
            WHERE product_id = p.product_id AND observed_at <= :at
            ORDER BY observed_at DESC LIMIT 1) l ON true
     WHERE s.at IS NOT NULL OR l.at IS NOT NULL
"""


def _known(expression: str) -> str:
    return f"nullif({expression}, 0)::bigint"


_LOOKED: Final = f"""
    SELECT k.product_id, {_known(microseconds("k.sales_at"))},
           {_known(microseconds("k.listings_at"))}, (f.product_id IS NOT NULL)::integer
      FROM looked k LEFT JOIN fallen f ON f.product_id = k.product_id
"""
_FIGURES: Final = f"""
    SELECT coalesce(l.product_id, s.product_id), coalesce(l.cell, s.cell), l.low,
           coalesce(l.listings, 0), s.median, coalesce(s.sales, 0), coalesce(s.sales_week, 0),
           {_known(microseconds("s.newest_at"))}
      FROM listed l FULL JOIN summed s ON s.product_id = l.product_id AND s.cell = l.cell
"""
_LOOK_TYPES: Final[dict[str, Any]] = dict.fromkeys(
    ("product_id", "sales_fetched_at", "listings_observed_at", "fell"),
    pl.Int64,
)
_FIGURE_TYPES: Final[dict[str, Any]] = dict.fromkeys(
    (
        "product_id",
        "cell",
        "listings_low",
        "listings_count",
        "sales_median",
        "sales_count",
        "sales_week",
        "sales_newest_at",
    ),
    pl.Int64,
)


class PastMarket:
    """The market of the cards that a backtest goes through, as of the moment of the last call."""

    def __init__(self, session: AsyncSession, market: Market) -> None:
        self._session = session
        self.known = replace(market, network=False)
        self._at: datetime | None = None
        self._products = pl.Series("product_id", [], pl.Int64)
        self._looks = pl.DataFrame(schema=_LOOK_TYPES)
        self._figures = pl.DataFrame(schema=_FIGURE_TYPES)

    async def evidence(self, keys: pl.DataFrame, at: datetime) -> pl.DataFrame:
        """Return `of_cards.COLUMNS` of each row of `of_cards.KEYS`, in their order. Each call is of a
        later moment than the one before it.
        """
        cards = keys.select(product_id="market_product", cell="market_cell")
        await self._advance(cards.filter(pl.col("product_id") != 0)["product_id"].unique(), at)
        looks = self._looks.with_columns(pl.col("fell") != 0)
        # Before the first look no sale was known.
        known = looks.with_columns(pl.col("sales_fetched_at").fill_null(0))
        bought = await buy_outs_of(self._session, self.known, known, at)
        return await asyncio.to_thread(joined, cards, looks, self._figures, bought, NO_NETWORK, at)

    async def _advance(self, products: pl.Series, at: datetime) -> None:
        if self._at is None:
            await self._session.execute(text(_BEGIN))
        new = products.filter(~products.is_in(self._products.implode()))
        bound: dict[str, Any] = {"new": new.to_list()}
        await self._session.execute(text(_NEW), bound)
        await sum_up(self._session, _LOOKS, bound | {"after": self._at or at, "at": at})
        looks = await self._read(_LOOKED, _LOOK_TYPES)
        figures = await self._read(_FIGURES, _FIGURE_TYPES)
        for table in SUMS:
            await self._session.execute(text(f"DROP TABLE {table}"))
        self._looks = _renewed(self._looks, looks, looks)
        self._figures = _renewed(self._figures, figures, looks)
        self._products = pl.concat([self._products, new])
        self._at = at

    async def _read(self, query: str, schema: dict[str, Any]) -> pl.DataFrame:
        data = await copy_chunks(self._session, query)
        return await asyncio.to_thread(frame_of, data, schema)


def _renewed(old: pl.DataFrame, new: pl.DataFrame, looks: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with those of the products that were looked at replaced."""
    return pl.concat([old.join(looks, on="product_id", how="anti"), new])


async def past_market(session: AsyncSession) -> PastMarket | None:
    """Return the market, or None where nothing was ever imported."""
    market = await the_market(session)
    return PastMarket(session, market) if market.imported else None
