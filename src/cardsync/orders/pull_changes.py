"""What a pull session keeps of its orders and items, and what is different of them by now: SQL over
`orders` and `p` (the order in its session). Pure.

The buyer's name is not kept, it is always read from the order itself. What differs is told by the
two rows alone, as every page of orders counts it: of the items by their hash.
"""

from __future__ import annotations

from cardsync.orders.items import ITEMS_HASH
from cardsync.orders.pullable import SHIPPED_AS_MARKED

# An item as it was: its columns of `order_item`, and as the session has them beside the item's id.
KEPT_OF_ITEM = (
    "sku_id", "product_name", "product_line", "condition", "set_name", "rarity", "quantity",
    "main_photo_url",
)  # fmt: skip

# What of an order is kept: column → value now.
_TOLD = {
    "status": "orders.status",
    "refund_amt": "orders.refund_amt",
    "shipping_type": "orders.shipping_type",
    "order_date": "orders.order_date",
    "item_count": "coalesce(orders.shipping_item_count, orders.items_quantity)",
}
KEPT_OF_ORDER = _TOLD | {
    "items_hash": f"""(SELECT {ITEMS_HASH} FROM order_item
                        WHERE order_item.seller_id = :seller
                          AND order_item.order_id = orders.id)""",
}


def _differs(name: str, now: str) -> str:
    # A shipment that its seller announced is no surprise.
    but = f" AND NOT {SHIPPED_AS_MARKED}" if name == "status" else ""
    return f"CASE WHEN {now} IS DISTINCT FROM p.{name}{but} THEN '{name}' END"


# The names of what differs. An order without a hash has the items that it always had.
CHANGED = f"""array_remove(ARRAY[{", ".join(_differs(name, now) for name, now in _TOLD.items())},
 CASE WHEN orders.items_hash IS NOT NULL AND orders.items_hash IS DISTINCT FROM p.items_hash
      THEN 'items' END], NULL)"""
