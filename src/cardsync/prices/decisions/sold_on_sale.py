"""Counts the copies that were sold while their cards had a sale's price. The figures are those of
the stored orders, whose lines have the prices that buyers paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.derived.sales_by_day import PIECES, SOLD

# An order without a time counts as placed at noon. If the card had the sale's price only in another
# part of that day, its copies are `undated`.
_NOON: Final = "(line.placed + CASE WHEN line.dated THEN interval '12 hours' ELSE interval '0' END)"
_SOLD: Final = queries_of(__package__)["sold"].format(
    placed_at=PLACED_AT, pieces=PIECES, sold=SOLD, noon=_NOON
)


class SoldOnSale(NamedTuple):
    """The copies that were sold at a sale's price from `since` to `until`, which is None while
    cards have the price. `value` is the buyers' payment for copies with a known price, before
    refunds; the price of `unpriced` copies is unknown. `undated` copies are in neither count: their
    orders have no time, and the sale began or ended on that day.
    """

    since: datetime
    until: datetime | None
    copies: int
    value: Decimal | None
    unpriced: int
    undated: int


async def sold_on_sale(
    source: Source, caller: Caller, sale_ids: Sequence[int], now: datetime
) -> dict[int, SoldOnSale]:
    """Return the copies sold in each of these sales; a sale whose price no card ever had has no
    entry.
    """
    named = {"seller": caller.seller_id, "sales": list(sale_ids), "now": now}
    return {sale: SoldOnSale._make(sold) for sale, *sold in await found(source, _SOLD, named)}
