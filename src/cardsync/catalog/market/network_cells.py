"""Updates a seller's part of the network's evidence after a sync, and writes only the rows of
`network_cell` that differ.

Only an exposed seller has rows, who has turned on both switches of the network. A figure from these
rows needs at least three other sellers (`catalog/market/of_cards.py`), and each seller counts once.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market import sums
from cardsync.catalog.market.newest import HELD, observed
from cardsync.catalog.market.verdicts import SALES_WINDOW
from cardsync.catalog.printings import PRINTINGS
from cardsync.platform.clock import microseconds
from cardsync.platform.database.copy import write_rows
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.database.transaction_settings import joined_by_hash
from cardsync.platform.derived.kept_figures import PRICING_ENDS, Figure, KeptFigure, Refresh

_EXPOSED: Final = "SELECT exposed FROM network_seller WHERE seller_id = :seller"
# Cell ids are smallint and must not run out. So the statement excludes existing cells, because each
# conflict would use an id, and inserts only known printings.
_CELLS: Final = """
    INSERT INTO market_cell (condition, printing, language)
    SELECT DISTINCT condition, printing, language FROM card
     WHERE seller_id = :seller AND NOT gone AND condition IS NOT NULL
       AND printing = ANY (CAST(:printings AS text[]))
    EXCEPT SELECT condition, printing, language FROM market_cell
    ON CONFLICT DO NOTHING
"""
_CARDS: Final = queries_of(__package__)["network_cells"]
_SOLD: Final = f"""
    (SELECT c.product_id, sold.at, c.cell, sold.price
       FROM (SELECT i.sku_id, (i.unit_price * 10000)::bigint AS price, {PLACED_AT} AS at
               FROM orders JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
              WHERE orders.seller_id = :seller AND orders.order_date >= :day
                AND orders.status_group <> 'Cancelled' AND i.unit_price > 0) sold
       JOIN own_card c ON c.marketplace_id = sold.sku_id
      WHERE sold.at BETWEEN :since AND :now) seen
"""
_OWN_SOLD: Final = """
    CREATE TEMP TABLE own_sold (product_id bigint, cell smallint, median bigint, sales integer,
                                sales_week integer, newest_sold_at bigint) ON COMMIT DROP
"""
_OWN: Final = """
    CREATE TEMP TABLE own_evidence ON COMMIT DROP AS
    SELECT product_id, cell, coalesce(l.listings, 0) AS listings, l.low,
           coalesce(s.sales, 0) AS sales, coalesce(s.sales_week, 0) AS sales_week, s.median,
           'epoch'::timestamptz + s.newest_sold_at * interval '1 microsecond' AS newest_sold_at
      FROM (SELECT product_id, cell, count(price)::integer AS listings, min(price) AS low
              FROM own_card GROUP BY product_id, cell HAVING count(price) > 0) l
      FULL JOIN own_sold s USING (product_id, cell)
"""
_GONE: Final = """
    DELETE FROM network_cell n
     WHERE n.seller_id = :seller
       AND NOT EXISTS (SELECT FROM own_evidence o
                        WHERE o.product_id = n.product_id AND o.cell = n.cell)
"""
_FIGURES: Final = ("listings", "low", "sales", "sales_week", "median", "newest_sold_at")
_OF_N: Final = ", ".join(f"n.{name}" for name in _FIGURES)
_OF_O: Final = ", ".join(f"o.{name}" for name in _FIGURES)
_CHANGED: Final = f"""
    INSERT INTO network_cell (product_id, cell, seller_id, {", ".join(_FIGURES)})
    SELECT o.product_id, o.cell, :seller, {_OF_O}
      FROM own_evidence o
      LEFT JOIN network_cell n ON n.product_id = o.product_id AND n.cell = o.cell
                              AND n.seller_id = :seller
     WHERE n.product_id IS NULL OR ({_OF_N}) IS DISTINCT FROM ({_OF_O})
     ORDER BY o.product_id, o.cell
    ON CONFLICT (product_id, cell, seller_id) DO UPDATE
       SET {", ".join(f"{name} = excluded.{name}" for name in _FIGURES)}
"""
_LOOKED: Final = """
    INSERT INTO network_look (seller_id, seen_at) VALUES (:seller, :now)
    ON CONFLICT (seller_id) DO UPDATE SET seen_at = excluded.seen_at
"""


async def refresh(session: AsyncSession, seller_id: int, now: datetime) -> int:
    """Write the rows that differ, or delete all rows of a hidden seller; return the number of
    changed rows.
    """
    seller = {"seller": seller_id}
    if not await session.scalar(text(_EXPOSED), seller):
        await session.execute(text("DELETE FROM network_look WHERE seller_id = :seller"), seller)
        return await run(session, "DELETE FROM network_cell WHERE seller_id = :seller", seller)
    since = now - SALES_WINDOW
    await session.execute(text(_CELLS), seller | {"printings": list(PRINTINGS)})
    await session.execute(text(_CARDS), seller)
    await session.execute(text("ANALYZE own_card"))
    # While the statistics do not include the seller's rows, the planner would read all cards for
    # each sold item, and all evidence for each stored cell.
    await session.execute(text(joined_by_hash()))
    await session.execute(text(_OWN_SOLD))
    span = {"since": since, "day": since.date(), "now": now}
    sales = await observed(session, _SOLD, {**seller, **span}, sums.SALES)
    sold = await asyncio.to_thread(_summed, sales, now)
    await write_rows(session, "own_sold", sold)
    await session.execute(text(_OWN))
    await session.execute(text("ANALYZE own_evidence"))
    written = await run(session, _GONE, seller) + await run(session, _CHANGED, seller)
    await session.execute(text(_LOOKED), seller | {"now": now})
    return written


async def _refresh(session: AsyncSession, asked: Refresh[None]) -> bool:
    await refresh(session, asked.seller_id, asked.now)
    return True


CELLS = KeptFigure[None](
    Figure.CELLS,
    tables=("network_cell", "network_look"),
    source="the cards and the sold items of a seller who shares them",
    marked_by=f"{PRICING_ENDS}; and a seller who shows or hides the shop",
    meanwhile="evidence has the figures of the last refresh, and `network_look` their age",
    refresh=_refresh,
)


def _summed(sales: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Return the sums of the seller's own sales in the thirty days before `now`."""
    looks = sales.select(sums.PRODUCT, sales_fetched_at=pl.lit(microseconds(now))).unique()
    named = {kept: held for held, kept in HELD.items() if kept in sums.SUMMED}
    return sums.summed(sales, looks).rename(named)
