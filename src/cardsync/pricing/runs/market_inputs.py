"""Market evidence as the engine's inputs: a seller's cards and the moment come in; a frame of the
evidence of those cards comes out, with every clock beside its figure.

What carries a time in the future is unknown, so it is left out. The engine compares the other
clocks with the limits of each rule, and the receipts freeze them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.database.copy import copy_chunks, frame_of, with_values
from cardsync.market.evidence import SALES_WINDOW, Cell, buy_out
from cardsync.market.stored import SUPPLY_SINCE, recent_supply
from cardsync.pricing.engine.evidence import Observed, asks
from cardsync.pricing.engine.rules import Rule
from cardsync.pricing.engine.run_inputs import TIME

INPUTS: Final = {
    "sales_median": pl.Int64(),
    "sales_count": pl.Int64(),
    "sales_newest_at": TIME,
    "sales_fetched_at": TIME,
    "listings_low": pl.Int64(),
    "listings_count": pl.Int64(),
    "listings_observed_at": TIME,
    "buy_out_detected_at": TIME,
}
_CELL: Final = ("condition", "printing", "language")
_KEY: Final = ("product_id", *_CELL)
_CARDS: Final = """
    SELECT c.id, coalesce(p.marketplace_product_id, q.marketplace_product_id) AS product_id,
           c.condition, c.printing, c.language
      FROM card c JOIN product p ON p.id = c.product_id
      LEFT JOIN product q ON q.id = p.adopted_by
     WHERE c.seller_id = :seller AND {only}
       AND coalesce(p.marketplace_product_id, q.marketplace_product_id) IS NOT NULL
"""
_OBSERVED: Final = """
    SELECT EXISTS (SELECT FROM market_look WHERE sales_at IS NOT NULL),
           EXISTS (SELECT FROM market_look WHERE listings_at IS NOT NULL)
"""
_MICROSECONDS: Final = "(extract(epoch FROM {}) * 1000000)::bigint"
_LOOKS: Final = f"""
    SELECT product_id,
           CASE WHEN sales_at <= :now THEN {_MICROSECONDS.format("sales_at")} END,
           CASE WHEN listings_at <= :now THEN {_MICROSECONDS.format("listings_at")} END
      FROM market_look WHERE product_id = ANY (CAST(:products AS bigint[]))
"""
# The middle of two prices is rounded half-up, as `evidence.median` does.
_SALES: Final = f"""
    SELECT s.product_id, c.condition, c.printing, c.language, s.median, s.sales, s.newest
      FROM (SELECT product_id, cell, count(*) AS sales,
                   floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY price) + 0.5)::bigint
                       AS median,
                   {_MICROSECONDS.format("max(sold_at)")} AS newest
              FROM market_sale
             WHERE product_id = ANY (CAST(:products AS bigint[]))
               AND sold_at BETWEEN :since AND :now
             GROUP BY product_id, cell) s
      JOIN market_cell c ON c.id = s.cell
"""
_LISTINGS: Final = """
    SELECT l.product_id, c.condition, c.printing, c.language, l.low, l.listings
      FROM market_look k
      JOIN market_listing l ON l.product_id = k.product_id AND l.observed_at = k.listings_at
      JOIN market_cell c ON c.id = l.cell
     WHERE k.product_id = ANY (CAST(:products AS bigint[])) AND k.listings_at <= :now
"""
# The products of which some cell holds at most a fifth of what it held lately. `evidence.buy_out`
# judges them.
_FALLEN: Final = """
    SELECT DISTINCT k.product_id
      FROM market_look k
      JOIN market_listing l ON l.product_id = k.product_id
                           AND l.observed_at BETWEEN :supply_since AND k.listings_at
      LEFT JOIN market_listing n ON n.product_id = k.product_id AND n.observed_at = k.listings_at
                                AND n.cell = l.cell
     WHERE k.product_id = ANY (CAST(:products AS bigint[]))
       AND k.listings_at BETWEEN :supply_since AND :now
       AND coalesce(n.copies, 0) * 5 <= l.copies
"""


async def observed_for(session: AsyncSession, rules: Iterable[Rule]) -> Observed:
    """Return the kinds of evidence that were ever imported; without a rule that asks, no one looks."""
    if not any(asks(rule) for rule in rules):
        return Observed(sales=False, listings=False)
    return Observed(*(await session.execute(text(_OBSERVED))).one())


async def market_inputs(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    only: str,
    card_id: int | None,
) -> pl.DataFrame:
    """Return `id` and INPUTS of the seller's cards of which anything was observed; `only` is a
    condition over `card c` without values.
    """
    nothing = pl.DataFrame(schema={"id": pl.Int64, **INPUTS})
    if await session.scalar(text("SELECT NOT EXISTS (SELECT FROM market_look)")):
        return nothing
    cards = await _read(
        session,
        _CARDS.format(only=only if card_id is None else f"c.id = {int(card_id)}"),
        {"seller": seller_id},
        {"id": pl.Int64, **_KEY_TYPES},
    )
    if cards.is_empty():
        return nothing
    values = {
        "products": cards["product_id"].unique().to_list(),
        "now": now,
        "since": now - SALES_WINDOW,
        "supply_since": now - SUPPLY_SINCE,
    }
    looks = await _read(session, _LOOKS, values, _LOOK_TYPES)
    if looks.is_empty():
        return nothing
    values["products"] = looks["product_id"].to_list()
    sales = await _read(session, _SALES, values, _SALE_TYPES)
    listings = await _read(session, _LISTINGS, values, _LISTING_TYPES)
    fallen = set((await session.scalars(text(_FALLEN), values)).all())
    bought = await _buy_outs(session, fallen, now)
    return await asyncio.to_thread(
        _joined,
        cards,
        looks,
        sales,
        listings,
        bought,
    )


_KEY_TYPES: Final = {"product_id": pl.Int64, **dict.fromkeys(_CELL, pl.String)}
_LOOK_TYPES: Final = {
    "product_id": pl.Int64,
    "sales_fetched_at": pl.Int64,
    "listings_observed_at": pl.Int64,
}
_SALE_TYPES: Final = {
    **_KEY_TYPES,
    "sales_median": pl.Int64,
    "sales_count": pl.Int64,
    "sales_newest_at": pl.Int64,
}
_LISTING_TYPES: Final = {**_KEY_TYPES, "listings_low": pl.Int64, "listings_count": pl.Int64}


async def _read(
    session: AsyncSession,
    sql: str,
    values: dict[str, Any],
    schema: dict[str, Any],
) -> pl.DataFrame:
    named = {name: value for name, value in values.items() if f":{name}" in sql}
    data = await copy_chunks(session, await with_values(session, sql, named))
    return await asyncio.to_thread(frame_of, data, schema)


async def _buy_outs(session: AsyncSession, products: set[int], now: datetime) -> pl.DataFrame:
    supplied = await recent_supply(session, products, now)

    def found() -> Iterator[tuple[int, str, str, str, datetime]]:
        for product_id, of in supplied.items():
            for cell in of.cells:
                verdict = buy_out(of.of(cell), of.sold(cell), now)
                if verdict.detected_at is not None:
                    yield (product_id, *_plain(cell), verdict.detected_at)

    schema: dict[str, Any] = {**_KEY_TYPES, "buy_out_detected_at": TIME}
    return pl.DataFrame(list(found()), schema=schema, orient="row")


def _plain(cell: Cell) -> tuple[str, str, str]:
    return cell.condition, cell.printing, cell.language


def _joined(
    cards: pl.DataFrame,
    looks: pl.DataFrame,
    sales: pl.DataFrame,
    listings: pl.DataFrame,
    bought: pl.DataFrame,
) -> pl.DataFrame:
    known = cards.join(looks, on="product_id")
    for frame in (sales, listings, bought):
        known = known.join(frame, on=_KEY, how="left")
    # An observation without any row of this condition says that there is none.
    looked_at_sales = pl.col("sales_fetched_at").is_not_null()
    looked_at_listings = pl.col("listings_observed_at").is_not_null()
    return known.select(
        "id",
        pl.when(looked_at_sales).then("sales_median").alias("sales_median"),
        pl.when(looked_at_sales).then(pl.col("sales_count").fill_null(0)).alias("sales_count"),
        pl.when(looked_at_sales).then("sales_newest_at").cast(TIME).alias("sales_newest_at"),
        pl.col("sales_fetched_at").cast(TIME),
        "listings_low",
        pl.when(looked_at_listings)
        .then(pl.col("listings_count").fill_null(0))
        .alias("listings_count"),
        pl.col("listings_observed_at").cast(TIME),
        "buy_out_detected_at",
    )
