"""Lists the orders that sold a card, newest first. A page begins after an order, so that a later
page costs as much as the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import msgspec

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.clock import rfc3339_or_none
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import cut
from cardsync.sales.orders.schemas import line_total, money
from cardsync.stock.cards.visible import VISIBLE


class CardSoldBody(msgspec.Struct):
    """`buyer_name` is null also for a caller who may not see buyers."""

    order_id: int
    order_number: str
    buyer_name: str | None
    order_date: date | None
    order_placed_at: str | None
    status: str
    """As the marketplace writes it"""
    refund_amt: str | None
    quantity: int | None
    unit_price: str | None
    line_total: str | None


class SoldPage(msgspec.Struct):
    """`after` begins the next page; it is null on the last one."""

    orders: list[CardSoldBody]
    """The orders that had the card, newest first"""
    after: int | None


# The SKU of a custom listing is the marketplace's own id, as the lines of orders have it.
_SKU = f"""
    SELECT CASE WHEN c.custom THEN c.listing_id ELSE c.marketplace_id END FROM card c
     WHERE c.seller_id = :seller AND c.id = :card AND {VISIBLE}
"""
_SOLD = f"""
    SELECT orders.id, orders.order_number, orders.buyer_name, orders.order_date, {PLACED_AT},
           orders.status_group, orders.refund_amt, item.quantity, item.unit_price
      FROM order_item AS item
      JOIN orders ON orders.seller_id = :seller AND orders.id = item.order_id
     WHERE item.seller_id = :seller AND item.sku_id = :sku {{behind}}
     ORDER BY coalesce(orders.order_date, '-infinity') DESC, orders.id DESC LIMIT :limit
"""
_BEHIND = """
       AND (coalesce(orders.order_date, '-infinity'), orders.id) < (
           SELECT coalesce(o.order_date, '-infinity'), o.id FROM orders o
            WHERE o.seller_id = :seller AND o.id = :after)
"""


async def orders_of_card(
    reading: Reading,
    caller: Caller,
    card_id: int,
    after: int | None,
    limit: int,
) -> SoldPage:
    """Raises NotFound."""
    values = {"seller": caller.seller_id, "member": caller.member_id, "card": card_id}
    found = await reading.rows(_SKU, values)
    if not found:
        raise errors.NotFound(f"there is no card {card_id}")
    statement = _SOLD.format(behind="" if after is None else _BEHIND)
    values = {
        "seller": caller.seller_id,
        "sku": found[0][0],
        "after": after,
        "limit": limit + 1,
    }
    found = await reading.rows(statement, values)
    page = cut(found, limit, lambda row: row[0])
    return SoldPage([_sold(row, caller) for row in page.rows], page.next)


def _sold(row: Sequence[Any], caller: Caller) -> CardSoldBody:
    order_id, number, buyer, day, placed_at, status, refund, quantity, price = row
    return CardSoldBody(
        order_id,
        number,
        caller.buyer(buyer),
        day,
        rfc3339_or_none(placed_at),
        status,
        money(refund),
        quantity,
        money(price),
        line_total(quantity, price),
    )
