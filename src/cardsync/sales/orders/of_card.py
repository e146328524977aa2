"""Lists the orders that contain a card, newest first. A page starts after the order `after`, not at
an offset, so that later pages are as fast as the first.
"""

from __future__ import annotations

from datetime import date, datetime

import msgspec

from cardsync.access.caller import Buyer, Caller
from cardsync.platform import errors
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.platform.kit.row_pages import cut
from cardsync.platform.kit.struct_rows import struct_of_values
from cardsync.sales.orders.schemas import Amount, line_total
from cardsync.stock.cards.visible import VISIBLE


class CardSoldBody(msgspec.Struct):
    """`buyer_name` is also null for a caller who may not see buyers."""

    order_id: int
    order_number: str
    buyer_name: Buyer
    order_date: date | None
    order_placed_at: datetime | None
    status: str
    """The marketplace's status"""
    refund_amt: Amount | None
    quantity: int | None
    unit_price: Amount | None
    line_total: str | None


class SoldPage(msgspec.Struct):
    """`after` begins the next page; it is null on the last one."""

    orders: list[CardSoldBody]
    """The orders that contain the card, newest first"""
    after: int | None


# Order lines of a custom listing contain its `listing_id` as SKU.
_SKU = f"""
    SELECT CASE WHEN c.custom THEN c.listing_id ELSE c.marketplace_id END FROM card c
     WHERE c.seller_id = :seller AND c.id = :card AND {VISIBLE}
"""
_SOLD = f"""
    SELECT orders.id, orders.order_number, orders.buyer_name, orders.order_date, {PLACED_AT},
           orders.status_group, orders.refund_amt, item.quantity, item.unit_price
      FROM order_item AS item
      JOIN orders ON orders.seller_id = :seller AND orders.id = item.order_id
     WHERE item.seller_id = :seller AND item.sku_id = ({_SKU}) {{behind}}
     ORDER BY coalesce(orders.order_date, '-infinity') DESC, orders.id DESC LIMIT :limit
"""
_BEHIND = """
       AND (coalesce(orders.order_date, '-infinity'), orders.id) < (
           SELECT coalesce(o.order_date, '-infinity'), o.id FROM orders o
            WHERE o.seller_id = :seller AND o.id = :after)
"""
_TYPES = dict.fromkeys(("seller", "member", "card", "after", "limit"), "bigint")
_SKU_OF_CARD = Planned("sku_of_card", _SKU, _TYPES)
_FIRST = Planned("orders_of_card", _SOLD.format(behind=""), _TYPES)
_NEXT = Planned("more_orders_of_card", _SOLD.format(behind=_BEHIND), _TYPES)


async def orders_of_card(
    reading: Reading,
    caller: Caller,
    card_id: int,
    after: int | None,
    limit: int,
) -> SoldPage:
    """Return a page of the orders that contain a card. Raises NotFound."""
    values = {"seller": caller.seller_id, "member": caller.member_id, "card": card_id}
    values |= {"after": after, "limit": limit + 1}
    found, rows = await reading.together([_SKU_OF_CARD, _FIRST if after is None else _NEXT], values)
    if not found:
        raise errors.NotFound(f"there is no card {card_id}")
    page = cut(rows, limit, lambda row: row[0])
    sold = [
        struct_of_values(CardSoldBody, row, caller, line_total=line_total(*row[-2:]))
        for row in page.rows
    ]
    return SoldPage(sold, page.next)
