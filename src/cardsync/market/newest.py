"""Keeps the newest market of each product in `market_newest`, in the transaction of the import that
observed it.

A row is a sequence of records of RECORD bigints. The first describes the product: its id, 0, both
clocks in microseconds (0 for none), and whether some cell's supply fell lately. Each further one
describes a cell: product, cell, lowest price and number of listings in the newest snapshot, then
median, sales, sales of the week and newest sale of thirty days. The sums cover the thirty days
before the look and not before the reading. So they stay right until the next look, and a look that
is older than a day is no evidence anyway. The sums of earlier looks are made here, too, and not
kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.database.session import run
from cardsync.market.evidence import FALL_LEAVES_BP, SALES_WEEK, SALES_WINDOW
from cardsync.market.stored import SUPPLY_SINCE

RECORD: Final = 8
SUMS: Final = ("looked", "summed", "listed", "fallen")
_WHOLE_BP: Final = 10_000


def _packed(*numbers: str) -> str:
    assert len(numbers) == RECORD
    return " || ".join(f"int8send(({number})::bigint)" for number in numbers)


def microseconds(column: str) -> str:
    # `extract` would count in numeric, which costs several times as much.
    return f"coalesce(date_part('epoch', {column}) * 1000000, 0)"


# The middle of two prices is rounded half-up, as `evidence.median` does. An array of prices in their
# order needs one sort; `percentile_cont` would sort each cell by itself.
_SUMMED: Final = """
    CREATE TEMP TABLE summed ON COMMIT DROP AS
    SELECT product_id, cell, (prices[(sales + 1) / 2] + prices[sales / 2 + 1] + 1) / 2 AS median,
           sales, sales_week, newest_at
      FROM (SELECT s.product_id, s.cell, array_agg(s.price ORDER BY s.price) AS prices,
                   count(*)::integer AS sales,
                   (count(*) FILTER (WHERE s.sold_at >= k.sales_at - CAST(:week AS interval))
                   )::integer AS sales_week,
                   max(s.sold_at) AS newest_at
              FROM looked k
              JOIN market_sale s ON s.product_id = k.product_id
               AND s.sold_at BETWEEN k.sales_at - CAST(:window AS interval) AND k.sales_at
             GROUP BY s.product_id, s.cell) cells
"""
_LISTED: Final = """
    CREATE TEMP TABLE listed ON COMMIT DROP AS
    SELECT l.product_id, l.cell, l.low, l.listings
      FROM looked k
      JOIN market_listing l ON l.product_id = k.product_id AND l.observed_at = k.listings_at
"""
# The products of which some cell holds much less than it held lately; `evidence.buy_out` judges them.
_FALLEN: Final = f"""
    CREATE TEMP TABLE fallen ON COMMIT DROP AS
    SELECT DISTINCT k.product_id
      FROM looked k
      JOIN market_listing l ON l.product_id = k.product_id
                           AND l.observed_at >= k.listings_at - CAST(:supply AS interval)
                           AND l.observed_at < k.listings_at
      LEFT JOIN market_listing n ON n.product_id = k.product_id AND n.observed_at = k.listings_at
                                AND n.cell = l.cell
     WHERE coalesce(n.copies, 0)::bigint * {_WHOLE_BP} <= l.copies::bigint * {FALL_LEAVES_BP}
"""
_LOOK: Final = _packed(
    "k.product_id",
    "0",
    microseconds("k.sales_at"),
    microseconds("k.listings_at"),
    "(f.product_id IS NOT NULL)::integer",
    "0",
    "0",
    "0",
)
_CELL: Final = _packed(
    "coalesce(l.product_id, s.product_id)",
    "coalesce(l.cell, s.cell)",
    "coalesce(l.low, 0)",
    "coalesce(l.listings, 0)",
    "coalesce(s.median, 0)",
    "coalesce(s.sales, 0)",
    "coalesce(s.sales_week, 0)",
    microseconds("s.newest_at"),
)
_CHANGED: Final = f"""
    INSERT INTO market_newest AS m (product_id, packed)
    SELECT k.product_id, {_LOOK} || coalesce(c.packed, ''::bytea)
      FROM looked k
      LEFT JOIN fallen f ON f.product_id = k.product_id
      LEFT JOIN (
        SELECT product_id, string_agg(packed, ''::bytea ORDER BY cell) AS packed
          FROM (SELECT coalesce(l.product_id, s.product_id) AS product_id,
                       coalesce(l.cell, s.cell) AS cell, {_CELL} AS packed
                  FROM listed l
                  FULL JOIN summed s ON s.product_id = l.product_id AND s.cell = l.cell) cells
         GROUP BY product_id) c ON c.product_id = k.product_id
     ORDER BY k.product_id
    ON CONFLICT (product_id) DO UPDATE SET packed = excluded.packed
     WHERE m.packed <> excluded.packed
"""


async def pack_newest(session: AsyncSession, products: str) -> int:
    """Bring the rows of some products up to date, and return how many were written; `products` is a
    query of their ids without values.
    """
    looks = f"""
        SELECT k.product_id, k.sales_at, k.listings_at
          FROM (SELECT DISTINCT product_id FROM ({products}) named) seen
          JOIN market_look k ON k.product_id = seen.product_id
    """
    await sum_up(session, looks, {})
    return await run(session, _CHANGED, {})


async def sum_up(session: AsyncSession, looks: str, values: Mapping[str, Any]) -> None:
    """Sum the market of some products, each at one look; `looks` is a query of (product_id,
    sales_at, listings_at). The sums are in the temporary tables SUMS until the transaction ends.
    """
    created = f"CREATE TEMP TABLE looked ON COMMIT DROP AS {looks}"
    await session.execute(text(created), dict(values))
    await session.execute(text("ANALYZE looked"))
    await session.execute(text(_SUMMED), {"week": SALES_WEEK, "window": SALES_WINDOW})
    await session.execute(text(_LISTED))
    await session.execute(text(_FALLEN), {"supply": SUPPLY_SINCE})
    for table in ("summed", "listed", "fallen"):
        await session.execute(text(f"ANALYZE {table}"))
