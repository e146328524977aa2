"""Reads the stored market evidence of some products, for `catalog/market/verdicts.py`. The tables
belong to no seller, so they are read by product ids and never joined with cards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market.verdicts import SALES_SAMPLE, SUPPLY_SINCE, Cell, Sale, Supply
from cardsync.platform.value_types import Row

# A product without known sales has one row whose columns of the sale are null.
_LATEST: Final = """
    SELECT k.product_id, k.sales_at, s.sold_at, s.price, s.quantity,
           c.condition, c.printing, c.language
      FROM market_look k
      LEFT JOIN LATERAL (
           SELECT sold_at, price, quantity, cell FROM market_sale
            WHERE product_id = k.product_id AND sold_at <= :now
            ORDER BY sold_at DESC, cell DESC, price DESC, quantity DESC LIMIT :sample) s ON true
      LEFT JOIN market_cell c ON c.id = s.cell
     WHERE k.product_id = ANY (CAST(:products AS bigint[]))
"""


@dataclass
class Sold:
    """A product's latest sales in all conditions, and the time at which they were observed."""

    fetched_at: datetime | None = None
    sales: list[Sale] = field(default_factory=list)


async def latest_sales(
    session: AsyncSession,
    products: Collection[int],
    now: datetime,
) -> dict[int, Sold]:
    """Return the latest sales of each product that was ever observed."""
    found: dict[int, Sold] = {}
    if not products:
        return found
    rows = await session.execute(
        text(_LATEST),
        {"products": list(products), "now": now, "sample": SALES_SAMPLE},
    )
    for row in rows:
        sold = found.setdefault(row.product_id, Sold(row.sales_at))
        if row.sold_at is not None:
            sold.sales.append(_sale(row))
    return found


def _sale(row: Row) -> Sale:
    cell = Cell(row.condition, row.printing, row.language)
    return Sale(row.sold_at, row.price, row.quantity, cell)


_SNAPSHOTS: Final = """
    SELECT product_id, observed_at, condition, printing, language, listings, copies, low
      FROM market_listing l JOIN market_cell c ON c.id = l.cell
     WHERE product_id = ANY (CAST(:products AS bigint[]))
       AND observed_at BETWEEN :since AND :now
"""
_SALES_SINCE: Final = """
    SELECT product_id, sold_at, price, quantity, condition, printing, language
      FROM market_sale s JOIN market_cell c ON c.id = s.cell
     WHERE product_id = ANY (CAST(:products AS bigint[]))
       AND sold_at BETWEEN :since AND :now
"""


@dataclass
class Supplied:
    """A product's recent supply by cell and snapshot, the times of all snapshots, and the sales of
    that time.
    """

    cells: dict[Cell, dict[datetime, Supply]] = field(default_factory=dict)
    moments: set[datetime] = field(default_factory=set)
    sales: list[Sale] = field(default_factory=list)

    def of(self, cell: Cell) -> list[Supply]:
        """Return a cell's supply at each snapshot; zero for a snapshot without the cell."""
        known = self.cells.get(cell, {})
        return [known.get(at) or Supply(at, 0, 0, None) for at in sorted(self.moments)]

    def sold(self, cell: Cell) -> list[Sale]:
        return [sale for sale in self.sales if sale.cell == cell]


async def recent_supply(
    session: AsyncSession,
    products: Iterable[int],
    now: datetime,
    span: timedelta = SUPPLY_SINCE,
) -> dict[int, Supplied]:
    """Return the supply and the sales of each product in the last `span`, which is long enough to
    find a buy-out that still counts.
    """
    values = {"products": list(products), "since": now - span, "now": now}
    found: dict[int, Supplied] = {}
    if not values["products"]:
        return found
    for row in await session.execute(text(_SNAPSHOTS), values):
        of = found.setdefault(row.product_id, Supplied())
        of.moments.add(row.observed_at)
        cell = Cell(row.condition, row.printing, row.language)
        of.cells.setdefault(cell, {})[row.observed_at] = Supply(
            row.observed_at,
            row.listings,
            row.copies,
            row.low,
        )
    for row in await session.execute(text(_SALES_SINCE), values):
        if (of_product := found.get(row.product_id)) is not None:
            of_product.sales.append(_sale(row))
    return found
