"""Sums of sales by product and cell: products that were looked at come in; the rows of `market_sum`
that differ go out, in the transaction of the import that looked.

A sum covers the thirty days before the look and not before the reading. So it stays right until the
next look, and a look that is older than a day is no evidence anyway.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.database.session import run
from cardsync.market.evidence import SALES_WEEK, SALES_WINDOW

# The middle of two prices is rounded half-up, as `evidence.median` does. An array of prices in their
# order comes out of one sort; `percentile_cont` would sort each cell by itself.
_SUMMED: Final = """
    CREATE TEMP TABLE summed ON COMMIT DROP AS
    SELECT product_id, cell, (prices[(sales + 1) / 2] + prices[sales / 2 + 1] + 1) / 2 AS median,
           sales, sales_week, newest_at
      FROM (SELECT s.product_id, s.cell, array_agg(s.price ORDER BY s.price) AS prices,
                   count(*)::integer AS sales,
                   (count(*) FILTER (WHERE s.sold_at >= k.sales_at - CAST(:week AS interval))
                   )::integer AS sales_week,
                   max(s.sold_at) AS newest_at
              FROM seen_product l
              JOIN market_look k ON k.product_id = l.product_id
              JOIN market_sale s ON s.product_id = k.product_id
               AND s.sold_at BETWEEN k.sales_at - CAST(:window AS interval) AND k.sales_at
             GROUP BY s.product_id, s.cell) cells
"""
_GONE: Final = """
    DELETE FROM market_sum m USING seen_product l
     WHERE m.product_id = l.product_id
       AND NOT EXISTS (SELECT FROM summed s WHERE s.product_id = m.product_id AND s.cell = m.cell)
"""
_CHANGED: Final = """
    INSERT INTO market_sum AS m (product_id, cell, median, sales, sales_week, newest_at)
    SELECT product_id, cell, median, sales, sales_week, newest_at FROM summed
     ORDER BY product_id, cell
    ON CONFLICT (product_id, cell) DO UPDATE
       SET median = excluded.median, sales = excluded.sales, sales_week = excluded.sales_week,
           newest_at = excluded.newest_at
     WHERE (m.median, m.sales, m.sales_week, m.newest_at)
           IS DISTINCT FROM (excluded.median, excluded.sales, excluded.sales_week,
                             excluded.newest_at)
"""


async def sum_sales(session: AsyncSession, products: str) -> int:
    """Bring the sums of some products up to date, and return how many rows were written;
    `products` is a query of their ids without values.
    """
    await session.execute(
        text(
            f"CREATE TEMP TABLE seen_product ON COMMIT DROP AS SELECT DISTINCT * FROM ({products}) AS seen"
        )
    )
    await session.execute(text("ANALYZE seen_product"))
    await session.execute(text(_SUMMED), {"week": SALES_WEEK, "window": SALES_WINDOW})
    await session.execute(text("ANALYZE summed"))
    return await run(session, _GONE, {}) + await run(session, _CHANGED, {})
