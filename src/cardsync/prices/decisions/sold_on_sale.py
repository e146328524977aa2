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
from cardsync.platform.derived.sales_by_day import PIECES, SOLD

# An order without a time counts as if it was placed at noon; where the card had the price only in
# another part of that day, nobody knows.
_NOON: Final = "(line.placed + CASE WHEN line.dated THEN interval '12 hours' ELSE interval '0' END)"
_SOLD: Final = f"""
    SELECT asked.sale_id, bounds.since, bounds.until,
           coalesce(sold.pieces, 0), sold.gross, coalesce(sold.unpriced, 0),
           coalesce(sold.undated, 0)
      FROM unnest(CAST(:sales AS bigint[])) AS asked (sale_id)
      JOIN LATERAL (
           SELECT min(p.since) AS since,
                  CASE WHEN bool_and(p.until IS NOT NULL) THEN max(p.until) END AS until
             FROM promotion_card p WHERE p.seller_id = :seller AND p.sale_id = asked.sale_id
      ) bounds ON bounds.since IS NOT NULL
      LEFT JOIN LATERAL (
           SELECT CAST(sum(line.pieces) FILTER (WHERE had.it) AS bigint) AS pieces,
                  sum(line.gross) FILTER (WHERE had.it) AS gross,
                  CAST(sum(line.unpriced) FILTER (WHERE had.it) AS bigint) AS unpriced,
                  CAST(sum(line.pieces) FILTER (WHERE NOT had.it) AS bigint) AS undated
             FROM (SELECT i.sku_id, {PLACED_AT} AS placed, orders.placed_at_given IS NULL AS dated,
                          {PIECES}
                     FROM orders
                     JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
                    WHERE {SOLD}
                      AND orders.order_date >= CAST(bounds.since AS date) - 1
                      AND orders.order_date <= CAST(coalesce(bounds.until, :now) AS date) + 1
                  ) line
             CROSS JOIN LATERAL (
                  SELECT bool_or({_NOON} >= p.since AND (p.until IS NULL OR {_NOON} < p.until)) AS it
                    FROM promotion_card p
                   WHERE p.seller_id = :seller AND p.sale_id = asked.sale_id
                     AND p.marketplace_id = line.sku_id
                     AND CASE WHEN line.dated THEN line.placed + interval '1 day' > p.since
                              ELSE line.placed >= p.since END
                     AND (p.until IS NULL OR line.placed < p.until)
             ) had
            WHERE had.it IS NOT NULL
      ) sold ON true
"""


class SoldOnSale(NamedTuple):
    """The copies of a sale's cards that were sold from `since` to `until`, null while it is on.
    `value` is the buyers' payment for copies with a price, before refunds; `unpriced` copies have
    no price. `undated` copies are not among them: of orders without a time, on a day that the sale
    began or ended.
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
