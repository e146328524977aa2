"""Reads the market as it was known at earlier moments, one after the other, for a backtest: the
evidence that a run of each moment would have read.

A product's newest look up to the moment counts: its newest snapshot of listings, and the sales that
were there when its sales were last looked at. The first moment is summed by PostgreSQL; each later
one reads what was observed since the one before, and sums the products that were looked at. The
past of the network is not kept, so it has no part.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.database.copy import copy_chunks, frame_of, with_values
from cardsync.market.evidence import FALL_LEAVES_BP, SALES_WEEK, SALES_WINDOW
from cardsync.market.newest import SUMS, microseconds, sum_up
from cardsync.market.of_cards import NO_NETWORK, TIME, Market, buy_outs_of, joined, the_market
from cardsync.market.stored import SUPPLY_SINCE

_WHOLE_BP: Final = 10_000
_PRODUCTS: Final = """
    CREATE TEMP TABLE past_product ON COMMIT DROP AS
    SELECT DISTINCT market_product AS product_id
      FROM (SELECT {columns} FROM card c {joins} WHERE c.seller_id = :seller) keys
     WHERE market_product <> 0
"""
_LOOKS: Final = """
    SELECT p.product_id, s.at AS sales_at, l.at AS listings_at
      FROM past_product p
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
_KNOWN: Final = "nullif({}, 0)::bigint"
_LOOKED: Final = f"""
    SELECT k.product_id, {_KNOWN.format(microseconds("k.sales_at"))},
           {_KNOWN.format(microseconds("k.listings_at"))}, (f.product_id IS NOT NULL)::integer
      FROM looked k LEFT JOIN fallen f ON f.product_id = k.product_id
"""
_LISTED: Final = "SELECT product_id, cell, low, listings FROM listed"
_SUMMED: Final = f"""
    SELECT product_id, cell, median, sales, sales_week,
           {_KNOWN.format(microseconds("newest_at"))} FROM summed
"""


@dataclass(frozen=True)
class _Source:
    """Observations of one kind: their table, clock and other columns, and how long they are needed
    behind the moment.
    """

    table: str
    clock: str
    others: tuple[str, ...]
    needed: timedelta

    @property
    def gathered(self) -> str:
        """Return a statement: the span's observations of the seller's products, by their time."""
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
        columns = ", ".join(("product_id", f"({microseconds('at')})::bigint", *self.others))
        return f"SELECT {columns} FROM past_{self.table} WHERE at > :after AND at <= :at"

    @property
    def types(self) -> dict[str, Any]:
        return dict.fromkeys(("product_id", "at", *self.others), pl.Int64)

    def is_needed(self, now: datetime) -> pl.Expr:
        return pl.col("at") > pl.lit(now - self.needed, TIME).cast(pl.Int64)


_LISTINGS: Final = _Source(
    "market_listing",
    "observed_at",
    ("cell", "listings", "copies", "low"),
    SUPPLY_SINCE,
)
_SALES: Final = _Source("market_sale", "sold_at", ("cell", "price"), SALES_WINDOW)
_SALES_LOOKS: Final = _Source("market_sales_look", "looked_at", (), timedelta())
_SOURCES: Final = (_LISTINGS, _SALES, _SALES_LOOKS)

_LOOK_NAMES: Final = ("product_id", "sales_fetched_at", "listings_observed_at", "fell")
_LISTED_NAMES: Final = ("product_id", "cell", "listings_low", "listings_count")
_SUMMED_NAMES: Final = (
    "product_id",
    "cell",
    "sales_median",
    "sales_count",
    "sales_week",
    "sales_newest_at",
)


class PastMarket:
    """The market of a seller's cards, as of the moment of the last call."""

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
        self._looks = pl.DataFrame()
        self._listed = pl.DataFrame()
        self._summed = pl.DataFrame()
        self._listings = pl.DataFrame()
        self._sales = pl.DataFrame()

    async def evidence(self, keys: pl.DataFrame, at: datetime) -> pl.DataFrame:
        """Return `of_cards.COLUMNS` of each row of `of_cards.KEYS`, in their order. Each call is of a
        later moment than the one before it, and none is later than the last.
        """
        if self._at is None:
            await self._begin(at)
        else:
            await self._advance(self._at, at)
        self._at = at
        looks = self._looks.with_columns(pl.col("fell") != 0)
        # Before the first look no sale was known.
        known = looks.with_columns(pl.col("sales_fetched_at").fill_null(0))
        bought = await buy_outs_of(self._session, self.known, known, at)
        return await asyncio.to_thread(self._told, keys, looks, bought, at)

    def _told(
        self,
        keys: pl.DataFrame,
        looks: pl.DataFrame,
        bought: pl.DataFrame,
        at: datetime,
    ) -> pl.DataFrame:
        cards = keys.select(product_id="market_product", cell="market_cell")
        figures = self._listed.join(
            self._summed,
            on=["product_id", "cell"],
            how="full",
            coalesce=True,
        ).with_columns(pl.col("listings_count", "sales_count", "sales_week").fill_null(0))
        return joined(cards, looks, figures, bought, NO_NETWORK, at)

    async def _begin(self, at: datetime) -> None:
        products = _PRODUCTS.format(columns=self.known.columns, joins=self.known.joins)
        bound = self.known.values | {"seller": self._seller_id}
        await self._session.execute(text(products), bound)
        await self._session.execute(text("ANALYZE past_product"))
        await sum_up(self._session, _LOOKS, {"at": at})
        self._looks = await self._read(_LOOKED, dict.fromkeys(_LOOK_NAMES, pl.Int64))
        self._listed = await self._read(_LISTED, dict.fromkeys(_LISTED_NAMES, pl.Int64))
        self._summed = await self._read(_SUMMED, dict.fromkeys(_SUMMED_NAMES, pl.Int64))
        for table in SUMS:
            await self._session.execute(text(f"DROP TABLE {table}"))
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
        """Take over what was seen of the products that were looked at."""
        of = "product_id"
        sales = looks.group_by(of).agg(sales_fetched_at=pl.col("at").max())
        newest = listings.filter(pl.col("at") == pl.col("at").max().over(of))
        fallen = _fallen(newest, self._listings)
        supplies = newest.group_by(of).agg(listings_observed_at=pl.col("at").max())
        supplies = supplies.with_columns(fell=pl.col(of).is_in(fallen.implode()).cast(pl.Int64))
        told = sales.join(supplies, on=of, how="full", coalesce=True)
        later = self._looks.join(told, on=of, how="full", coalesce=True, suffix="_now")
        self._looks = later.select(
            of,
            *(pl.coalesce(f"{name}_now", name).alias(name) for name in _LOOK_NAMES[1:3]),
            pl.coalesce("fell_now", "fell", pl.lit(0)).alias("fell"),
        )
        listed = newest.select(of, "cell", listings_low="low", listings_count="listings")
        self._listed = pl.concat([self._listed.join(supplies, on=of, how="anti"), listed])
        summed = _sums(self._sales, sales)
        self._summed = pl.concat([self._summed.join(sales, on=of, how="anti"), summed])

    async def _since(self, source: _Source, after: datetime, at: datetime) -> pl.DataFrame:
        query = await with_values(self._session, source.slice, {"after": after, "at": at})
        return await self._read(query, source.types)

    async def _read(self, query: str, schema: dict[str, Any]) -> pl.DataFrame:
        data = await copy_chunks(self._session, query)
        return await asyncio.to_thread(frame_of, data, schema)


def _fallen(newest: pl.DataFrame, listings: pl.DataFrame) -> pl.Series:
    """Return the products of which some cell holds much less than it held lately."""
    moments = newest.select("product_id", now="at").unique()
    supply = SUPPLY_SINCE // timedelta(microseconds=1)
    before = listings.join(moments, on="product_id").filter(
        pl.col("at") >= pl.col("now") - supply, pl.col("at") < pl.col("now")
    )
    left = newest.select("product_id", "cell", left="copies")
    compared = before.join(left, on=["product_id", "cell"], how="left")
    fell = pl.col("left").fill_null(0) * _WHOLE_BP <= pl.col("copies") * FALL_LEAVES_BP
    return compared.filter(fell)["product_id"].unique()


def _sums(sales: pl.DataFrame, looks: pl.DataFrame) -> pl.DataFrame:
    """Return the sums of the thirty days before each look; the middle of two prices is rounded
    half-up, as `evidence.median` does.
    """
    looked = pl.col("sales_fetched_at")
    window, week = (span // timedelta(microseconds=1) for span in (SALES_WINDOW, SALES_WEEK))
    counted = sales.join(looks, on="product_id").filter(
        pl.col("at") >= looked - window, pl.col("at") <= looked
    )
    sums = counted.group_by("product_id", "cell").agg(
        prices=pl.col("price").sort(),
        sales_count=pl.len().cast(pl.Int64),
        sales_week=(pl.col("at") >= looked - week).sum().cast(pl.Int64),
        sales_newest_at=pl.col("at").max(),
    )
    low, high = ((pl.col("sales_count") - one) // 2 for one in (1, 0))
    middle = pl.col("prices").list.get(low) + pl.col("prices").list.get(high)
    return sums.with_columns(sales_median=(middle + 1) // 2).select(_SUMMED_NAMES)


async def past_market(
    session: AsyncSession,
    seller_id: int,
    last: datetime,
) -> PastMarket | None:
    """Return the market up to a last moment, or None where nothing was ever imported."""
    market = await the_market(session)
    return PastMarket(session, seller_id, market, last) if market.imported else None
