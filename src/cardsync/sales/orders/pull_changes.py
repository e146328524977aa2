"""SQL for the values that a pull session copies from its orders, and for the copied values that
differ from the current orders. The SQL uses the tables `orders` and `p`, which is
`pull_session_order`. Pure.

A session does not copy the buyer's name. Every page of orders counts differences, so the SQL
compares only these two rows; a hash finds changed items without reading the items.
"""

from __future__ import annotations

from cardsync.sales.orders.items import ITEMS_HASH
from cardsync.sales.orders.pullable import SHIPPED_AS_MARKED

# `pull_session_item` has copies of these columns of `order_item`.
KEPT_OF_ITEM = (
    "sku_id", "product_name", "product_line", "condition", "set_name", "rarity", "quantity",
    "main_photo_url",
)  # fmt: skip

# Columns of `pull_session_order`, each with the SQL of the order's current value.
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
    # A new status that only confirms the seller's shipped mark is no difference.
    but = f" AND NOT {SHIPPED_AS_MARKED}" if name == "status" else ""
    return f"CASE WHEN {now} IS DISTINCT FROM p.{name}{but} THEN '{name}' END"


# The names of the differing values. An order without a hash has had no change of its items.
CHANGED = f"""array_remove(ARRAY[{", ".join(_differs(name, now) for name, now in _STORED.items())},
 CASE WHEN orders.items_hash IS NOT NULL AND orders.items_hash IS DISTINCT FROM p.items_hash
      THEN 'items' END], NULL)"""
