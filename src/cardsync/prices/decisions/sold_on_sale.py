"""Counts the copies of a sale's cards that were sold while they had its price, from the present
orders: lines keep their prices, whatever the cards' later prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.derived.sales_by_day import PIECES, SOLD

# An order without a time counts as if it was placed at noon; where the card had the price only in
# another part of that day, nobody knows.
_NOON: Final = "(line.placed + CASE WHEN line.dated THEN interval '12 hours' ELSE interval '0' END)"
_SOLD: Final = queries_of(__package__)["sold"].format(
    placed_at=PLACED_AT, pieces=PIECES, sold=SOLD, noon=_NOON
)


class SoldOnSale(NamedTuple):
    """The copies of a sale's cards that were sold from `since` to `until`, null while it is on.
    `value` is the buyers' payment for copies with a price, before refunds; `unpriced` copies have
    no price. `undated` copies are not counted in them: their orders have no time, and the sale
    began or ended on that day.
    """

    since: datetime
    until: datetime | None
    copies: int
    value: Decimal | None
    unpriced: int
    undated: int


async def sold_on_sale(
    session: AsyncSession, caller: Caller, sale_ids: Sequence[int], now: datetime
) -> dict[int, SoldOnSale]:
    """Return the copies sold in each of these sales; a sale that never had a card has no entry."""
    named = {"seller": caller.seller_id, "sales": list(sale_ids), "now": now}
    rows = await session.execute(text(_SOLD), named)
    return {sale: SoldOnSale._make(sold) for sale, *sold in rows}
