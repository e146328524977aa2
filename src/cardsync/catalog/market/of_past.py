"""Reads the market evidence of successive past moments for a backtest: at each moment, the evidence
that a pricing run would have read then.

For each product, this is its newest snapshot of listings before the moment, and the sales that were
known when its sales were last observed (a look, see `models.py`). For each moment after the first,
only the observations since the previous moment are read, and only products with a new look are
computed again (`catalog/market/sums.py`). The network's past evidence is not stored, so it is not
used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market import sums
from cardsync.catalog.market.newest import observed, shown
from cardsync.catalog.market.of_cards import (
    NO_NETWORK,
    TIME,
    Market,
    buy_outs_of,
    joined,
    the_market,
)
from cardsync.catalog.market.verdicts import SALES_WINDOW, SUPPLY_SINCE
from cardsync.platform.database.room_sql import queries_of

_PRODUCTS: Final = """
    CREATE TEMP TABLE past_product ON COMMIT DROP AS
    SELECT DISTINCT market_product AS product_id
      FROM (SELECT {columns} FROM card c {joins} WHERE c.seller_id = :seller) keys
     WHERE market_product <> 0
"""
_LOOKS: Final = queries_of(__package__)["looks_of_past"]


@dataclass(frozen=True)
class _Source:
    """A kind of observation: its table, the columns for the time (`clock`) and the values
    (`others`), and the maximum age of needed observations.
    """

    table: str
    clock: str
    others: tuple[str, ...]
    needed: timedelta

    @property
    def gathered(self) -> str:
        """Return the statement that copies the observations of the seller's products, from `:since`
        to `:last`, into a temp table, sorted by time.
        """
        others = (f"m.{name}" for name in self.others)
        columns = ", ".join(("m.product_id", f"m.{self.clock} AS at", *others))
        return f"""
            CREATE TEMP TABLE past_{self.table} ON COMMIT DROP AS
            SELECT {columns}
              FROM {self.table} m JOIN past_product p ON p.product_id = m.product_id
             WHERE m.{self.clock} > :since AND m.{self.clock} <= :last ORDER BY m.{self.clock}
        """

    @property
    def slice(self) -> str:
        return f"past_{self.table} WHERE at > :after AND at <= :at"

    def is_needed(self, now: datetime) -> pl.Expr:
        return pl.col("at") > pl.lit(now - self.needed, TIME).cast(pl.Int64)


_LISTINGS: Final = _Source("market_listing", "observed_at", sums.LISTINGS[2:], SUPPLY_SINCE)
_SALES: Final = _Source("market_sale", "sold_at", sums.SALES[2:], SALES_WINDOW)
_SALES_LOOKS: Final = _Source("market_sales_look", "looked_at", (), timedelta())
_SOURCES: Final = (_LISTINGS, _SALES, _SALES_LOOKS)


class PastMarket:
    """The market of a seller's cards at the moment of the last call of `evidence`."""

    def __init__(
        self,
        session: AsyncSession,
        seller_id: int,
        market: Market,
        last: datetime,
    ) -> None:
        self.known = replace(market, network=False)
        self._session = session
        self._seller_id = seller_id
        self._last = last
        self._at: datetime | None = None
        self._looks = _empty(sums.LOOKS).with_columns(fell=pl.lit(False))
        self._listed = _empty(sums.LISTED)
        self._summed = _empty(sums.SUMMED)
        self._listings = pl.DataFrame()
        self._sales = pl.DataFrame()

    async def evidence(self, keys: pl.DataFrame, at: datetime) -> pl.DataFrame:
        """Return `of_cards.COLUMNS` for each row of `keys`, in the same order. `at` must be later
        than in the previous call, and not after `last`.
        """
        if self._at is None:
            await self._begin(at)
        else:
            await self._advance(self._at, at)
        self._at = at
        # Before the first look at sales, no sale was known. A time of 0 excludes all sales.
        known = self._looks.with_columns(pl.col("sales_fetched_at").fill_null(0))
        bought = await buy_outs_of(self._session, self.known, known, at)
        return await asyncio.to_thread(self._evidence, keys, bought, at)

    def _evidence(self, keys: pl.DataFrame, bought: pl.DataFrame, at: datetime) -> pl.DataFrame:
        cards = keys.select(product_id="market_product", cell="market_cell")
        figures = sums.figures(self._listed, self._summed)
        return joined(cards, self._looks, figures, bought, NO_NETWORK, at)

    async def _begin(self, at: datetime) -> None:
        products = _PRODUCTS.format(columns=self.known.columns, joins=self.known.joins)
        bound = self.known.values | {"seller": self._seller_id}
        await self._session.execute(text(products), bound)
        await self._session.execute(text("ANALYZE past_product"))
        async for one in shown(self._session, _LOOKS, {"at": at}):
            self._looks = pl.concat([self._looks, one.looks])
            self._listed = pl.concat([self._listed, one.listed])
            self._summed = pl.concat([self._summed, one.summed])
        for source in _SOURCES:
            span = {"since": at - source.needed, "last": self._last}
            await self._session.execute(text(source.gathered), span)
            await self._session.execute(text(f"CREATE INDEX ON past_{source.table} (at)"))
            await self._session.execute(text(f"ANALYZE past_{source.table}"))
        self._listings = await self._since(_LISTINGS, at - _LISTINGS.needed, at)
        self._sales = await self._since(_SALES, at - _SALES.needed, at)

    async def _advance(self, before: datetime, at: datetime) -> None:
        listings, sales, looks = [await self._since(one, before, at) for one in _SOURCES]
        await asyncio.to_thread(self._add, listings, sales, looks, at)

    def _add(
        self,
        listings: pl.DataFrame,
        sales: pl.DataFrame,
        looks: pl.DataFrame,
        at: datetime,
    ) -> None:
        self._listings = pl.concat([self._listings, listings])
        self._sales = pl.concat([self._sales, sales])
        self._look(listings, looks)
        self._listings = self._listings.filter(_LISTINGS.is_needed(at))
        self._sales = self._sales.filter(_SALES.is_needed(at))

    def _look(self, listings: pl.DataFrame, looks: pl.DataFrame) -> None:
        """Compute the figures of the products with a new look again."""
        of = sums.PRODUCT
        sales = looks.group_by(of).agg(sales_fetched_at=pl.col("at").max())
        supplies = listings.group_by(of).agg(listings_observed_at=pl.col("at").max())
        fallen = sums.fallen(self._listings, supplies)
        supplies = supplies.with_columns(fell=pl.col(of).is_in(fallen.implode()))
        figures_of_cells = sales.join(supplies, on=of, how="full", coalesce=True)
        later = self._looks.join(figures_of_cells, on=of, how="full", coalesce=True, suffix="_now")
        self._looks = later.select(
            of,
            *(pl.coalesce(f"{name}_now", name).alias(name) for name in sums.LOOKS[1:]),
            pl.coalesce("fell_now", "fell", pl.lit(False)).alias("fell"),
        )
        self._listed = pl.concat(
            [self._listed.join(supplies, on=of, how="anti"), sums.listed(listings, supplies)]
        )
        self._summed = pl.concat(
            [self._summed.join(sales, on=of, how="anti"), sums.summed(self._sales, sales)]
        )

    async def _since(self, source: _Source, after: datetime, at: datetime) -> pl.DataFrame:
        columns = ("product_id", "at", *source.others)
        return await observed(self._session, source.slice, {"after": after, "at": at}, columns)


def _empty(columns: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.Int64))


async def past_market(
    session: AsyncSession,
    seller_id: int,
    last: datetime,
) -> PastMarket | None:
    """Return a reader of the market up to the moment `last`; None if nothing was ever imported."""
    market = await the_market(session)
    return PastMarket(session, seller_id, market, last) if market.imported else None
