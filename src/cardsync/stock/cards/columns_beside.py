"""Reads the columns of the page's table of cards that are in other database tables: the cost of
the copies, and the last sale. One query reads them for all cards of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.stock.search.flags import COST, LAST_SOLD

COLUMNS: Final = frozenset({"cost", "margin", "last_sold"})
_BESIDE: Final = f"""
    SELECT c.id, {COST} AS cost, {LAST_SOLD} AS sold_at FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[]))
"""
_MARKETS: Final = f"""
    SELECT c.id, c.market, {COST} AS cost FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[]))
"""


class CostAndSale(NamedTuple):
    """A card's cost and last sale. `cost` is None if it is unknown, `sold_at` is None if the card
    never sold.
    """

    cost: Decimal | None
    sold_at: datetime | None

    def margin(self, price: str | None) -> Decimal | None:
        """Return the margin: price minus cost, in percent of the price. Pure."""
        asked = Decimal(price or 0)
        return None if self.cost is None or not asked else (asked - self.cost) * 100 / asked


async def beside_of(reading: Reading, caller: Caller, ids: Sequence[int]) -> dict[int, CostAndSale]:
    """Return cost and last sale by card id."""
    if not ids:
        return {}
    rows = await reading.rows(_BESIDE, {"seller": caller.seller_id, "ids": list(ids)})
    return {card_id: CostAndSale(cost, sold_at) for card_id, cost, sold_at in rows}


class MarketAndCost(NamedTuple):
    """A card's market price and cost; each is None if it is unknown."""

    market: Decimal | None = None
    cost: Decimal | None = None


async def markets_and_costs(
    reading: Reading, caller: Caller, ids: Sequence[int]
) -> dict[int, MarketAndCost]:
    """Return market price and cost by card id."""
    if not ids:
        return {}
    rows = await reading.rows(_MARKETS, {"seller": caller.seller_id, "ids": list(ids)})
    return {card_id: MarketAndCost(market, cost) for card_id, market, cost in rows}
