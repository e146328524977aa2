"""The market of a seller's cards in one reading: cards and the moment come in; a frame of sales,
listings and buy-outs with their clocks comes out.

Cells are read as numbers, and only those that the seller holds: a shop of 300,000 cards costs half
of it so. Tables of the market are read by product ids and joined with no card. Where no fresh
observation was imported, the network's evidence stands in; it never tells of a buy-out, because a
change of the source would look like one. What carries a time in the future is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.database.copy import copy_chunks, frame_of, with_values
from cardsync.market.evidence import (
    LISTINGS_FRESH,
    SALES_FETCHED,
    Cell,
    buy_out,
)
from cardsync.market.stored import SUPPLY_SINCE, recent_supply

TIME: Final = pl.Datetime("us", "UTC")
# So many sellers besides the reader stand behind each figure of the network.
SELLERS: Final = 3
# The few cells come as values, so that a seller's cards are joined with no table of the market. A
# card in a cell that nobody observed has cell 0: of a product that was looked at, there is none.
_KEYS: Final = """
    SELECT c.id, coalesce(p.marketplace_product_id, q.marketplace_product_id) AS product_id,
           coalesce(k.id, 0)
      FROM card c JOIN product p ON p.id = c.product_id
      LEFT JOIN product q ON q.id = p.adopted_by
      LEFT JOIN unnest(CAST(:ids AS bigint[]), CAST(:conditions AS text[]),
                       CAST(:printings AS text[]), CAST(:languages AS text[]))
                AS k (id, condition, printing, language)
        ON k.condition = c.condition AND k.printing = c.printing AND k.language = c.language
     WHERE c.seller_id = :seller AND {only}
       AND coalesce(p.marketplace_product_id, q.marketplace_product_id) IS NOT NULL
"""
# `extract` would count in numeric, which costs several times as much.
_MICROSECONDS: Final = "(date_part('epoch', {}) * 1000000)::bigint"
# The listings of the newest snapshot; a product without any in these cells has one row.
_LISTINGS: Final = f"""
    SELECT k.product_id,
           CASE WHEN k.sales_at <= :now THEN {_MICROSECONDS.format("k.sales_at")} END,
           CASE WHEN k.listings_at <= :now THEN {_MICROSECONDS.format("k.listings_at")} END,
           coalesce(l.cell, 0), l.low, l.listings
      FROM market_look k
      LEFT JOIN market_listing l ON l.product_id = k.product_id AND l.observed_at = k.listings_at
                                AND k.listings_at <= :now
                                AND l.cell = ANY (CAST(:cells AS smallint[]))
     WHERE k.product_id = ANY (CAST(:products AS bigint[]))
"""
_SALES: Final = f"""
    SELECT product_id, cell, median, sales, {_MICROSECONDS.format("newest_at")}, sales_week
      FROM market_sum
     WHERE product_id = ANY (CAST(:products AS bigint[]))
       AND cell = ANY (CAST(:cells AS smallint[]))
"""
# The products of which some cell holds at most a fifth of what it held lately. `evidence.buy_out`
# judges them.
_FALLEN: Final = """
    SELECT DISTINCT k.product_id
      FROM market_look k
      JOIN market_listing l ON l.product_id = k.product_id
                           AND l.observed_at >= :supply_since AND l.observed_at < k.listings_at
      LEFT JOIN market_listing n ON n.product_id = k.product_id AND n.observed_at = k.listings_at
                                AND n.cell = l.cell
     WHERE k.product_id = ANY (CAST(:products AS bigint[]))
       AND k.listings_at BETWEEN :supply_since AND :now
       AND coalesce(n.copies, 0) * 5 <= l.copies
"""
# Each seller counts once: the lowest price of all, and the median of the sellers' medians. A seller
# that was not read for a day counts no more, and neither does a hidden one.
_NETWORK: Final = f"""
    SELECT n.product_id, n.cell,
           CASE WHEN count(n.low) >= :sellers THEN min(n.low) END,
           CASE WHEN count(n.low) >= :sellers THEN sum(n.listings)::bigint END,
           CASE WHEN count(n.low) >= :sellers
                THEN min({_MICROSECONDS.format("l.seen_at")}) FILTER (WHERE n.low > 0) END,
           CASE WHEN count(n.median) >= :sellers
                THEN floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY n.median) + 0.5)::bigint END,
           CASE WHEN count(n.median) >= :sellers THEN sum(n.sales)::bigint END,
           CASE WHEN count(n.median) >= :sellers THEN sum(n.sales_week)::bigint END,
           CASE WHEN count(n.median) >= :sellers
                THEN {_MICROSECONDS.format("max(n.newest_sold_at)")} END,
           CASE WHEN count(n.median) >= :sellers
                THEN min({_MICROSECONDS.format("l.seen_at")}) FILTER (WHERE n.median > 0) END
      FROM network_cell n
      JOIN network_seller s ON s.seller_id = n.seller_id
      JOIN network_look l ON l.seller_id = n.seller_id
     WHERE n.product_id = ANY (CAST(:products AS bigint[]))
       AND n.cell = ANY (CAST(:cells AS smallint[]))
       AND n.seller_id <> :reader AND s.exposed AND NOT s.suspended
       AND (s.paid_until IS NULL OR s.paid_until > :now)
       AND l.seen_at BETWEEN :looked_since AND :now
     GROUP BY n.product_id, n.cell
    HAVING count(n.low) >= :sellers OR count(n.median) >= :sellers
"""
_CELL: Final = ["product_id", "cell"]
_KEY_TYPES: Final = dict.fromkeys(("id", *_CELL), pl.Int64)
_LISTING_TYPES: Final = dict.fromkeys(
    (
        "product_id",
        "sales_fetched_at",
        "listings_observed_at",
        "cell",
        "listings_low",
        "listings_count",
    ),
    pl.Int64,
)
_SALE_TYPES: Final = dict.fromkeys(
    (*_CELL, "sales_median", "sales_count", "sales_newest_at", "sales_week"),
    pl.Int64,
)

_OF_NETWORK: Final = (
    "network_low",
    "network_listings",
    "network_listed_at",
    "network_median",
    "network_sales",
    "network_week",
    "network_newest_at",
    "network_fetched_at",
)
_NETWORK_TYPES: Final = dict.fromkeys((*_CELL, *_OF_NETWORK), pl.Int64)
_ANY: Final = "SELECT EXISTS (SELECT FROM market_look), EXISTS (SELECT FROM network_look)"
COLUMNS: Final[dict[str, Any]] = {
    "id": pl.Int64(),
    "sales_median": pl.Int64(),
    "sales_count": pl.Int64(),
    "sales_newest_at": TIME,
    "sales_week": pl.Int64(),
    "sales_fetched_at": TIME,
    "listings_low": pl.Int64(),
    "listings_count": pl.Int64(),
    "listings_observed_at": TIME,
    "buy_out_detected_at": TIME,
    # These two say that the figure is the network's.
    "sales_of_network": pl.Boolean(),
    "listings_of_network": pl.Boolean(),
}


async def market_of(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    only: str,
) -> pl.DataFrame:
    """Return COLUMNS of the cards of whose products anything was observed; `only` is a condition
    over `card c` without values.
    """
    imported, network = (await session.execute(text(_ANY))).one()
    if not imported and not network:
        return pl.DataFrame(schema=COLUMNS)
    cells = await _cells(session)
    asked = {
        "seller": seller_id,
        "ids": list(cells.values()),
        "conditions": [cell.condition for cell in cells],
        "printings": [cell.printing for cell in cells],
        "languages": [cell.language for cell in cells],
    }
    keys = await _read(session, _KEYS.format(only=only), asked, _KEY_TYPES)
    values = {
        "products": keys["product_id"].unique().to_list(),
        "cells": keys["cell"].unique().to_list(),
        "now": now,
        "supply_since": now - SUPPLY_SINCE,
        "sellers": SELLERS,
        "reader": seller_id,
        "looked_since": now - LISTINGS_FRESH,
    }
    listings = await _read(session, _LISTINGS, values, _LISTING_TYPES)
    sales = await _read(session, _SALES, values, _SALE_TYPES)
    named = {name: values[name] for name in ("products", "now", "supply_since")}
    fallen = set((await session.scalars(text(_FALLEN), named)).all())
    bought = await _buy_outs(session, fallen, cells, now)
    others = pl.DataFrame(schema=_NETWORK_TYPES)
    if network and (lacking := _without_fresh(keys, listings, now)):
        others = await _read(session, _NETWORK, values | {"products": lacking}, _NETWORK_TYPES)
    return await asyncio.to_thread(
        _joined,
        keys,
        listings,
        sales,
        bought,
        others,
        now,
    )


async def _read(
    session: AsyncSession,
    sql: str,
    values: dict[str, Any],
    schema: dict[str, Any],
) -> pl.DataFrame:
    named = {name: value for name, value in values.items() if f":{name}" in sql}
    data = await copy_chunks(session, await with_values(session, sql, named))
    return await asyncio.to_thread(frame_of, data, schema)


def _without_fresh(keys: pl.DataFrame, listings: pl.DataFrame, now: datetime) -> list[int]:
    """Return the products of which not both sales and listings were imported lately."""
    fresh = listings.filter(
        (pl.col("sales_fetched_at") >= pl.lit(now - SALES_FETCHED, TIME).cast(pl.Int64))
        & (pl.col("listings_observed_at") >= pl.lit(now - LISTINGS_FRESH, TIME).cast(pl.Int64))
    )
    lacking = keys.join(fresh, on="product_id", how="anti")
    return lacking["product_id"].unique().to_list()


async def _cells(session: AsyncSession) -> dict[Cell, int]:
    rows = await session.execute(text("SELECT id, condition, printing, language FROM market_cell"))
    return {Cell(*texts): number for number, *texts in rows}


async def _buy_outs(
    session: AsyncSession,
    products: set[int],
    cells: dict[Cell, int],
    now: datetime,
) -> pl.DataFrame:
    supplied = await recent_supply(session, products, now)

    def found() -> Iterator[tuple[int, int, datetime]]:
        for product_id, of in supplied.items():
            for cell in of.cells:
                verdict = buy_out(of.of(cell), of.sold(cell), now)
                if verdict.detected_at is not None:
                    yield product_id, cells[cell], verdict.detected_at

    schema: dict[str, Any] = {**dict.fromkeys(_CELL, pl.Int64), "buy_out_detected_at": TIME}
    return pl.DataFrame(list(found()), schema=schema, orient="row")


def _joined(
    keys: pl.DataFrame,
    listings: pl.DataFrame,
    sales: pl.DataFrame,
    bought: pl.DataFrame,
    others: pl.DataFrame,
    now: datetime,
) -> pl.DataFrame:
    clocks = ["sales_fetched_at", "listings_observed_at"]
    looks = listings.select("product_id", *clocks).unique("product_id")
    known = keys.join(looks, on="product_id", how="left")
    for frame in (listings.drop(clocks), sales, bought):
        known = known.join(frame, on=_CELL, how="left")
    # An observation without any row of this cell says that there is none.
    seen_sales = pl.col("sales_fetched_at").is_not_null()
    seen_listings = pl.col("listings_observed_at").is_not_null()
    told = known.with_columns(
        sales_count=pl.when(seen_sales).then(pl.col("sales_count").fill_null(0)),
        sales_week=pl.when(seen_sales).then(pl.col("sales_week").fill_null(0)),
        sales_median=pl.when(seen_sales).then("sales_median"),
        sales_newest_at=pl.when(seen_sales).then("sales_newest_at"),
        listings_count=pl.when(seen_listings).then(pl.col("listings_count").fill_null(0)),
    )
    if others.is_empty():
        own = pl.lit(False)
        told = told.with_columns(sales_of_network=own, listings_of_network=own)
    else:
        told = _with_network(told, others, now)
    anything = (
        pl.col("sales_fetched_at").is_not_null() | pl.col("listings_observed_at").is_not_null()
    )
    return told.filter(anything).select(pl.col(name).cast(type_) for name, type_ in COLUMNS.items())


# The figures that the network's take the place of, by the flag that says so.
_BY_NETWORK: Final = {
    "listings_of_network": {
        "listings_low": "network_low",
        "listings_count": "network_listings",
        "listings_observed_at": "network_listed_at",
    },
    "sales_of_network": {
        "sales_median": "network_median",
        "sales_count": "network_sales",
        "sales_week": "network_week",
        "sales_newest_at": "network_newest_at",
        "sales_fetched_at": "network_fetched_at",
    },
}


def _with_network(told: pl.DataFrame, others: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Let the network's figures stand in where no fresh one was imported."""
    sold = _stands_in("sales_fetched_at", "network_fetched_at", now, SALES_FETCHED)
    listed = _stands_in("listings_observed_at", "network_listed_at", now, LISTINGS_FRESH)
    joined = told.join(others, on=_CELL, how="left").with_columns(
        sales_of_network=sold,
        listings_of_network=listed,
    )
    return joined.with_columns(
        pl.when(flag).then(other).otherwise(own).alias(own)
        for flag, pairs in _BY_NETWORK.items()
        for own, other in pairs.items()
    )


def _stands_in(own: str, other: str, now: datetime, fresh: timedelta) -> pl.Expr:
    """Return whether the network's figure is taken: it is known, and no fresh one was imported."""
    old = pl.col(own) < pl.lit(now - fresh, TIME).cast(pl.Int64)
    return pl.col(other).is_not_null() & (pl.col(own).is_null() | old)
