"""Finds the differences between a pull session and its orders: SQL over `orders` and `p` (the order
in its session) for the values that a session stores and for those that have changed since. Pure.

The session does not store the buyer's name, which is always read from the order itself. The two
rows alone show a difference, because every page of orders counts differences; a hash shows those of
the items.
"""

from __future__ import annotations

from cardsync.sales.orders.items import ITEMS_HASH
from cardsync.sales.orders.pullable import SHIPPED_AS_MARKED

# An item as it was has these columns of `order_item`, and the session has them beside the item's
# id.
KEPT_OF_ITEM = (
    "sku_id", "product_name", "product_line", "condition", "set_name", "rarity", "quantity",
    "main_photo_url",
)  # fmt: skip

# The session stores these values of an order: column → current value.
_STORED = {
    "status": "orders.status",
    "refund_amt": "orders.refund_amt",
    "shipping_type": "orders.shipping_type",
    "order_date": "orders.order_date",
    "item_count": "coalesce(orders.shipping_item_count, orders.items_quantity)",
}
KEPT_OF_ORDER = _STORED | {
    "items_hash": f"""(SELECT {ITEMS_HASH} FROM order_item
                        WHERE order_item.seller_id = :seller
                          AND order_item.order_id = orders.id)""",
}


def _differs(name: str, now: str) -> str:
    # A shipment that its seller announced is no surprise.
    but = f" AND NOT {SHIPPED_AS_MARKED}" if name == "status" else ""
    return f"CASE WHEN {now} IS DISTINCT FROM p.{name}{but} THEN '{name}' END"


# The expression lists the names of the columns that differ. An order without a hash has the items
# that it always had.
CHANGED = f"""array_remove(ARRAY[{", ".join(_differs(name, now) for name, now in _STORED.items())},
 CASE WHEN orders.items_hash IS NOT NULL AND orders.items_hash IS DISTINCT FROM p.items_hash
      THEN 'items' END], NULL)"""
