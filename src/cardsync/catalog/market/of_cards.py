"""Reads the market of a seller's cards as one frame: sales, listings and buy-outs with their times.

An import has stored the market of each product (`catalog/market/newest.py`). The market's tables
are read by product ids and never joined with cards. If no fresh observation was imported, the
network's evidence is used. The network's evidence never indicates a buy-out, because the change
from imported to network figures would look like a buy-out. Observations with a time in the future
count as unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market import newest, sums
from cardsync.catalog.market.stored_evidence import recent_supply
from cardsync.catalog.market.verdicts import (
    LISTINGS_FRESH,
    SALES_FETCHED,
    SUPPLY_SINCE,
    Cell,
    buy_out,
)
from cardsync.platform.clock import microseconds
from cardsync.platform.database.copy import read_integers, read_rows
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.value_types import FrameSchema

TIME: Final = pl.Datetime("us", "UTC")
# The minimum number of sellers, without the reading seller, for each figure of the network.
SELLERS: Final = 3
# A shop with at least `_MANY` products, and 1/`_PART` of all products, reads the whole table,
# because passing its product ids to the database takes longer.
_MANY: Final = 5_000
# A reading receives the evidence of so many products as rows.
_FEW: Final = 100
_PART: Final = 4
_SIZE: Final = "SELECT reltuples::bigint FROM pg_class WHERE oid = 'market_look'::regclass"
# Each seller counts once: the figures are the lowest price of all sellers, and the median of the
# sellers' medians. Sellers who are hidden, or were not read for a day, do not count.
_NETWORK: Final = queries_of(__package__)["network"].format(
    seen_at=newest.microseconds("l.seen_at"),
    newest_sold_at=newest.microseconds("max(n.newest_sold_at)"),
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
NO_NETWORK: Final = pl.DataFrame(schema=dict.fromkeys((*sums.CELL, *_OF_NETWORK), pl.Int64))
_MARKET: Final = """
    SELECT EXISTS (SELECT FROM market_look), EXISTS (SELECT FROM network_look),
           ARRAY(SELECT jsonb_build_array(id, condition, printing, language) FROM market_cell)
"""
COLUMNS: Final[FrameSchema] = {
    "sales_median": pl.Int64(),
    "sales_count": pl.Int64(),
    "sales_newest_at": TIME,
    "sales_week": pl.Int64(),
    "sales_fetched_at": TIME,
    "listings_low": pl.Int64(),
    "listings_count": pl.Int64(),
    "listings_observed_at": TIME,
    "buy_out_detected_at": TIME,
    # True if the figures are the network's.
    "sales_of_network": pl.Boolean(),
    "listings_of_network": pl.Boolean(),
}


def _or_zero(columns: Mapping[str, str]) -> dict[str, str]:
    return {name: f"coalesce({column}, 0)::bigint" for name, column in columns.items()}


# These columns are read as integers with 0 instead of null.
_CLOCKS: Final = ("sales_fetched_at", "listings_observed_at")
_ABSENT_AS_ZERO: Final = ("listings_low", "sales_median", "sales_newest_at")
_LOOKS: Final = (
    _or_zero(
        {
            sums.PRODUCT: "product_id",
            "sales_fetched_at": newest.microseconds("sales_at"),
            "listings_observed_at": newest.microseconds("listings_at"),
            "fell": "fell::integer",
        }
    ),
    "market_look WHERE fell IS NOT NULL",
)
_FIGURES: Final = (
    _or_zero(
        {
            **{evidence: held for held, evidence in newest.HELD.items()},
            "sales_newest_at": newest.microseconds("newest_sold_at"),
        }
    ),
    "market_newest WHERE true",
)

# The columns with a card's product and cell in the market, which are 0 if the card has none.
KEYS: Final = ("market_product", "market_cell")


@dataclass(frozen=True)
class Market:
    """The existing kinds of evidence (imported or of the network), and the ids of all cells, which
    are combinations of condition, printing and language.
    """

    imported: bool
    network: bool
    cells: dict[Cell, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.imported and not self.network

    @property
    def columns(self) -> str:
        """Return the SQL expressions of KEYS, which use `joins`."""
        return (
            "coalesce(market_p.marketplace_product_id, market_q.marketplace_product_id, 0)"
            " AS market_product, coalesce(market_k.id, 0)::integer AS market_cell"
        )

    @property
    def joins(self) -> str:
        """Return the joins that add KEYS to `card c`. The few cells are parameters, so that a
        seller's cards are not joined with the market's tables.
        """
        return """
            LEFT JOIN product market_p ON market_p.id = c.product_id
            LEFT JOIN product market_q ON market_q.id = market_p.adopted_by
            LEFT JOIN unnest(CAST(:market_ids AS bigint[]), CAST(:market_conditions AS text[]),
                             CAST(:market_printings AS text[]), CAST(:market_languages AS text[]))
                   AS market_k (id, condition, printing, language)
              ON market_k.condition = c.condition AND market_k.printing = c.printing
             AND market_k.language = c.language
        """

    @property
    def values(self) -> dict[str, object]:
        return {
            "market_ids": list(self.cells.values()),
            "market_conditions": [cell.condition for cell in self.cells],
            "market_printings": [cell.printing for cell in self.cells],
            "market_languages": [cell.language for cell in self.cells],
        }


NO_MARKET: Final = Market(imported=False, network=False)


async def the_market(session: Source) -> Market:
    [[imported, network, rows]] = await rows_of(session)(_MARKET, {})
    if not imported and not network:
        return NO_MARKET
    cells = {Cell(*texts): number for number, *texts in rows}
    return Market(imported=imported, network=network, cells=cells)


async def market_of(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    only: str,
) -> pl.DataFrame:
    """Return `id` and COLUMNS of the cards whose products have observations. `only` is an SQL
    condition on `card c` without parameters.
    """
    market = await the_market(session)
    if market.is_empty:
        return pl.DataFrame(schema={"id": pl.Int64(), **COLUMNS})
    source = (
        f"(SELECT c.id, {market.columns} FROM card c {market.joins}"
        f" WHERE c.seller_id = :seller AND {only}) keys"
    )
    columns = {name: name for name in ("id", *KEYS)}
    keys = await read_integers(
        session, columns, source, "id", market.values | {"seller": seller_id}
    )
    seen = await evidence_of(session, market, keys, seller_id, now)
    return keys.select("id").hstack(seen).filter(pl.col("sales_of_network").is_not_null())


async def evidence_of(
    session: Source,
    market: Market,
    keys: pl.DataFrame,
    seller_id: int,
    now: datetime,
) -> pl.DataFrame:
    """Return COLUMNS for each row of `keys`, in the same order; all are null for a product without
    observations.
    """
    cards = keys.select(product_id="market_product", cell="market_cell")
    products = cards.filter(pl.col("product_id") != 0)["product_id"].unique()
    looks, figures = await _newest(session, products, now)
    lacking = _without_fresh(products, looks, now) if market.network else []
    bought, others = await each_of(
        session,
        buy_outs_of(
            session,
            market,
            looks.join(products.to_frame(), on="product_id", how="semi"),
            now,
        ),
        _of_network(session, lacking, cards, seller_id, now),
    )
    return await asyncio.to_thread(joined, cards, looks, figures, bought, others, now)


async def _newest(
    session: Source,
    products: pl.Series,
    now: datetime,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of `market_look` and `market_newest` for these products; for all products if
    these are many.
    """
    which: dict[str, object] = {}
    count = len(products)
    if few := count < _MANY or count * _PART < (await rows_of(session)(_SIZE, {}))[0][0]:
        which = {"ids": products.to_list()}
    only = " AND product_id = ANY (CAST(:ids AS bigint[]))" if few else ""
    if isinstance(session, Reading):
        few = count <= _FEW
    looks, figures = await each_of(
        session,
        *(
            read_integers(session, columns, table + only, sums.PRODUCT, which, few=few)
            for columns, table in (_LOOKS, _FIGURES)
        ),
    )
    return await asyncio.to_thread(_known, looks, figures, now)


def _known(
    looks: pl.DataFrame, figures: pl.DataFrame, now: datetime
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Turn zeros and times in the future into nulls."""
    past = pl.lit(now, TIME).cast(pl.Int64)
    known = [pl.when(pl.col(name).is_between(1, past)).then(name).alias(name) for name in _CLOCKS]
    given = [pl.when(pl.col(name) != 0).then(name).alias(name) for name in _ABSENT_AS_ZERO]
    return (
        looks.with_columns(*known, pl.col("fell") != 0),
        figures.with_columns(given),
    )


async def _of_network(
    session: Source,
    products: list[int],
    cards: pl.DataFrame,
    seller_id: int,
    now: datetime,
) -> pl.DataFrame:
    values = {
        "products": products,
        "cells": cards["cell"].unique().to_list(),
        "now": now,
        "sellers": SELLERS,
        "reader": seller_id,
        "looked_since": now - LISTINGS_FRESH,
    }
    if not products:
        return NO_NETWORK
    few = len(products) <= _FEW
    return await read_rows(session, _NETWORK, NO_NETWORK.schema, values, few=few)


def _without_fresh(products: pl.Series, looks: pl.DataFrame, now: datetime) -> list[int]:
    """Return the products without recently imported sales, or without recently imported listings."""
    fresh = looks.filter(
        (pl.col("sales_fetched_at") >= pl.lit(now - SALES_FETCHED, TIME).cast(pl.Int64))
        & (pl.col("listings_observed_at") >= pl.lit(now - LISTINGS_FRESH, TIME).cast(pl.Int64))
    )
    return products.to_frame().join(fresh, on="product_id", how="anti")["product_id"].to_list()


async def buy_outs_of(
    session: Source,
    market: Market,
    looks: pl.DataFrame,
    now: datetime,
) -> pl.DataFrame:
    """Return product_id, cell and buy_out_detected_at of the buy-outs among the products whose
    supply fell. Only sales before the product's newest look at sales count.
    """
    recent = pl.col("listings_observed_at") >= pl.lit(now - SUPPLY_SINCE, TIME).cast(pl.Int64)
    fallen = looks.filter("fell", recent)
    until = dict(fallen.select("product_id", "sales_fetched_at").iter_rows())
    supplied = await recent_supply(session, until, now)

    def found() -> Iterator[tuple[int, int, datetime]]:
        for product_id, of in supplied.items():
            for cell in of.cells:
                sold = of.sold(cell)
                if (looked := until[product_id]) is not None:
                    sold = [sale for sale in sold if microseconds(sale.sold_at) <= looked]
                verdict = buy_out(of.of(cell), sold, now)
                if verdict.detected_at is not None:
                    yield product_id, market.cells[cell], verdict.detected_at

    schema: FrameSchema = {**dict.fromkeys(sums.CELL, pl.Int64), "buy_out_detected_at": TIME}
    return pl.DataFrame(list(found()), schema=schema, orient="row")


def joined(
    cards: pl.DataFrame,
    looks: pl.DataFrame,
    figures: pl.DataFrame,
    bought: pl.DataFrame,
    others: pl.DataFrame,
    now: datetime,
) -> pl.DataFrame:
    """Return COLUMNS for each product_id and cell of `cards`. `looks` has the times of products,
    `figures` the imported figures of cells, and `others` the network's figures.
    """
    known = cards.join(looks, on="product_id", how="left", maintain_order="left")
    for frame in (figures, bought):
        known = known.join(frame, on=sums.CELL, how="left", maintain_order="left")
    # If the product was observed, a cell without a row had no sales or listings.
    seen_sales = pl.col("sales_fetched_at").is_not_null()
    seen_listings = pl.col("listings_observed_at").is_not_null()
    evidence = known.with_columns(
        sales_count=pl.when(seen_sales).then(pl.col("sales_count").fill_null(0)),
        sales_week=pl.when(seen_sales).then(pl.col("sales_week").fill_null(0)),
        sales_median=pl.when(seen_sales).then("sales_median"),
        sales_newest_at=pl.when(seen_sales).then("sales_newest_at"),
        listings_count=pl.when(seen_listings).then(pl.col("listings_count").fill_null(0)),
        listings_low=pl.when(seen_listings).then("listings_low"),
    )
    if others.is_empty():
        own = pl.lit(False)
        evidence = evidence.with_columns(sales_of_network=own, listings_of_network=own)
    else:
        evidence = _with_network(evidence, others, now)
    anything = (
        pl.col("sales_fetched_at").is_not_null() | pl.col("listings_observed_at").is_not_null()
    )
    flags = ("sales_of_network", "listings_of_network")
    evidence = evidence.with_columns(pl.when(anything).then(name).alias(name) for name in flags)
    return evidence.select(pl.col(name).cast(type_) for name, type_ in COLUMNS.items())


# For each flag, the imported figures and the network's figures that replace them.
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


def _with_network(evidence: pl.DataFrame, others: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Replace figures by the network's if no fresh figures were imported."""
    sold = _network_is_taken("sales_fetched_at", "network_fetched_at", now, SALES_FETCHED)
    listed = _network_is_taken("listings_observed_at", "network_listed_at", now, LISTINGS_FRESH)
    joined = evidence.join(others, on=sums.CELL, how="left", maintain_order="left").with_columns(
        sales_of_network=sold,
        listings_of_network=listed,
    )
    return joined.with_columns(
        pl.when(flag).then(other).otherwise(own).alias(own)
        for flag, pairs in _BY_NETWORK.items()
        for own, other in pairs.items()
    )


def _network_is_taken(own: str, other: str, now: datetime, fresh: timedelta) -> pl.Expr:
    """Return whether the network's figures are used, because they exist and no fresh figures were
    imported.
    """
    old = pl.col(own) < pl.lit(now - fresh, TIME).cast(pl.Int64)
    return pl.col(other).is_not_null() & (pl.col(own).is_null() | old)
