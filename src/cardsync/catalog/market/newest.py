"""Stores the newest market of each product in `market_newest`, in the transaction of the import of
its observations.

The sums (`catalog/market/sums.py`) cover the thirty days before the look, which is the time of the
observation, not the time of reading. So they stay correct until the next look. A look older than a
day is not used as evidence.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market import sums
from cardsync.catalog.market.verdicts import SALES_WINDOW, SUPPLY_SINCE
from cardsync.platform.database.copy import read_integers, write_rows
from cardsync.platform.database.session import run

# The number of products that are summed at a time, which limits the memory of an import.
_AT_ONCE: Final = 20_000


def microseconds(column: str) -> str:
    # `extract` would compute in numeric, which takes several times as long.
    return f"(date_part('epoch', {column}) * 1000000)::bigint"


_LOOKED: Final = f"""
    CREATE TEMP TABLE looked ON COMMIT DROP AS
    SELECT product_id, sales_at, listings_at,
           (row_number() OVER (ORDER BY product_id) - 1) / {_AT_ONCE} AS part
      FROM ({{looks}}) looks
"""
_CLOCKS: Final = {
    "product_id": "product_id",
    "sales_fetched_at": f"coalesce({microseconds('sales_at')}, 0)",
    "listings_observed_at": f"coalesce({microseconds('listings_at')}, 0)",
}
# The products of a part have adjacent ids. With the condition on their range, the planner reads
# only the rows of these products.
_SALES: Final = """
    (SELECT s.product_id, s.sold_at AS at, s.cell, s.price
       FROM looked k
       JOIN market_sale s ON s.product_id = k.product_id
        AND s.sold_at BETWEEN k.sales_at - CAST(:window AS interval) AND k.sales_at
      WHERE k.part = :part AND s.product_id BETWEEN :first AND :last) seen
"""
_LISTINGS: Final = """
    (SELECT l.product_id, l.observed_at AS at, l.cell, l.listings, l.copies, l.low
       FROM looked k
       JOIN market_listing l ON l.product_id = k.product_id
        AND l.observed_at BETWEEN k.listings_at - CAST(:supply AS interval) AND k.listings_at
      WHERE k.part = :part AND l.product_id BETWEEN :first AND :last) seen
"""


class NewestEvidence(NamedTuple):
    """The evidence of some products. `looks` has the times of their looks and `fell`; `listed` and
    `summed` are results of the functions in `catalog/market/sums.py`.
    """

    looks: pl.DataFrame
    listed: pl.DataFrame
    summed: pl.DataFrame


async def shown(
    session: AsyncSession,
    looks: str,
    values: Mapping[str, object],
) -> AsyncIterator[NewestEvidence]:
    """Yield the evidence of looks at products, some products at a time. `looks` is a query with the
    columns product_id, sales_at and listings_at.
    """
    await session.execute(text(_LOOKED.format(looks=looks)), dict(values))
    await session.execute(text("ANALYZE looked"))
    last = await session.scalar(text("SELECT max(part) FROM looked"))
    for part in range(0 if last is None else last + 1):
        source = f"looked WHERE part = {part}"
        clocks = await read_integers(session, _CLOCKS, source, sums.PRODUCT)
        products = clocks[sums.PRODUCT]
        of = {
            "part": part,
            "first": products.min(),
            "last": products.max(),
            "window": SALES_WINDOW,
            "supply": SUPPLY_SINCE,
        }
        sales = await observed(session, _SALES, of, sums.SALES)
        listings = await observed(session, _LISTINGS, of, sums.LISTINGS)
        yield await asyncio.to_thread(_shown, clocks, sales, listings)


def _shown(looks: pl.DataFrame, sales: pl.DataFrame, listings: pl.DataFrame) -> NewestEvidence:
    looks = looks.with_columns(
        pl.when(pl.col(name) != 0).then(name).alias(name) for name in sums.LOOKS[1:]
    )
    fallen = sums.fallen(listings, looks)
    marked = looks.with_columns(fell=pl.col(sums.PRODUCT).is_in(fallen.implode()))
    return NewestEvidence(marked, sums.listed(listings, looks), sums.summed(sales, looks))


async def observed(
    session: AsyncSession,
    source: str,
    values: Mapping[str, object],
    columns: Sequence[str],
) -> pl.DataFrame:
    """Return `columns` of the observations in `source` as integers. No column may be null; `at` is
    the time of an observation.
    """
    asked = {name: f"{name}::bigint" for name in columns} | {"at": microseconds("at")}
    return await read_integers(session, asked, source, sums.PRODUCT, values)


# The columns of `market_newest`, each with the column of `catalog/market/sums.py` for its value.
HELD: Final = {
    "product_id": "product_id",
    "cell": "cell",
    "low": "listings_low",
    "listings": "listings_count",
    "median": "sales_median",
    "sales": "sales_count",
    "sales_week": "sales_week",
    "newest_sold_at": "sales_newest_at",
}
_LOOKS: Final = """
    SELECT product_id, sales_at, listings_at FROM market_look
     WHERE product_id IN ({products})
"""
_INCOMING: Final = (
    """CREATE TEMP TABLE newest_look (product_id bigint, fell boolean) ON COMMIT DROP""",
    """CREATE TEMP TABLE newest_cell (product_id bigint, cell smallint, low bigint,
        listings integer, median bigint, sales integer, sales_week integer, newest_sold_at bigint)
       ON COMMIT DROP""",
)
_GONE: Final = """
    DELETE FROM market_newest m USING newest_look k
     WHERE m.product_id = k.product_id
       AND NOT EXISTS (SELECT FROM newest_cell c
                        WHERE c.product_id = m.product_id AND c.cell = m.cell)
"""
_FIGURES: Final = tuple(name for name in HELD if name not in sums.CELL)
_OF_M, _OF_C = (", ".join(f"{table}.{name}" for name in _FIGURES) for table in "mc")
_CHANGED: Final = f"""
    INSERT INTO market_newest ({", ".join(HELD)})
    SELECT c.product_id, c.cell, {_OF_C}
      FROM (SELECT product_id, cell, low, listings, median, sales, sales_week,
                   'epoch'::timestamptz + newest_sold_at * interval '1 microsecond'
                   AS newest_sold_at FROM newest_cell) c
      LEFT JOIN market_newest m ON m.product_id = c.product_id AND m.cell = c.cell
     WHERE m.product_id IS NULL OR ({_OF_M}) IS DISTINCT FROM ({_OF_C})
     ORDER BY c.product_id, c.cell
    ON CONFLICT (product_id, cell) DO UPDATE
       SET {", ".join(f"{name} = excluded.{name}" for name in _FIGURES)}
"""
_FELL: Final = """
    UPDATE market_look k SET fell = n.fell FROM newest_look n
     WHERE k.product_id = n.product_id AND k.fell IS DISTINCT FROM n.fell
"""


async def keep_newest(session: AsyncSession, products: str) -> int:
    """Update the rows of some products, and return the number of written rows. `products` is a
    query of product ids without parameters.
    """
    for statement in _INCOMING:
        await session.execute(text(statement))
    async for one in shown(session, _LOOKS.format(products=products), {}):
        marked = one.looks.select("product_id", "fell")
        cells = sums.figures(one.listed, one.summed).select(**HELD)
        for table, rows in (("newest_look", marked), ("newest_cell", cells)):
            await write_rows(session, table, rows)
    for table in ("newest_look", "newest_cell"):
        await session.execute(text(f"ANALYZE {table}"))
    return sum([await run(session, one, {}) for one in (_GONE, _CHANGED, _FELL)])
