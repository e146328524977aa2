"""Reads the stored market evidence of some products, for `catalog/market/verdicts.py`. The tables
belong to no seller, so they are read by product ids and never joined with cards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market.verdicts import SALES_SAMPLE, SUPPLY_SINCE, Cell, Sale, Supply
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.session import in_one_message
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


SUPPLY: Final = (
    """
    SELECT product_id, observed_at, condition, printing, language, listings, copies, low
      FROM market_listing l JOIN market_cell c ON c.id = l.cell
     WHERE product_id = ANY (CAST(:products AS bigint[]))
       AND observed_at BETWEEN :since AND :now
""",
    """
    SELECT product_id, sold_at, price, quantity, condition, printing, language
      FROM market_sale s JOIN market_cell c ON c.id = s.cell
     WHERE product_id = ANY (CAST(:products AS bigint[]))
       AND sold_at BETWEEN :since AND :now
""",
)
"""The statements whose rows `supply_of` reads."""


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
    session: Source,
    products: Iterable[int],
    now: datetime,
) -> dict[int, Supplied]:
    """Return the supply and the sales of each product in the last `SUPPLY_SINCE`, which is long
    enough to find a buy-out that still counts.
    """
    values = {"products": list(products), "since": now - SUPPLY_SINCE, "now": now}
    if not values["products"]:
        return {}
    return supply_of(*await in_one_message(session, SUPPLY, values))


def supply_of(
    snapshots: Iterable[Sequence[Any]], sales: Iterable[Sequence[Any]]
) -> dict[int, Supplied]:
    """Return the supply of each product that has a snapshot, from the rows of `SUPPLY`. Pure."""
    found: dict[int, Supplied] = {}
    for product, at, condition, printing, language, listings, copies, low in snapshots:
        of = found.setdefault(product, Supplied())
        of.moments.add(at)
        cell = Cell(condition, printing, language)
        of.cells.setdefault(cell, {})[at] = Supply(at, listings, copies, low)
    for product, at, price, quantity, *of_cell in sales:
        if (of_product := found.get(product)) is not None:
            of_product.sales.append(Sale(at, price, quantity, Cell(*of_cell)))
    return found
