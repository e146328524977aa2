"""What a pull session keeps of its orders and items, and what is different of them by now: SQL over `orders`, `p` (the order in its
session) and `d` (orders whose items differ). Pure.

The buyer's name is not kept: whose order it is, is always read from the order itself.
"""

from __future__ import annotations

from cardsync.orders.pullable import SHIPPED_AS_MARKED

# An item as it was: its columns of `order_item`, and as the session has them beside the item's id.
KEPT_OF_ITEM = (
    "sku_id", "product_name", "product_line", "condition", "set_name", "rarity", "quantity", "main_photo_url",
)  # fmt: skip
# A photo is another whenever its address is: that makes no card another.
_PULLED = ", ".join(name for name in KEPT_OF_ITEM if name != "main_photo_url")

# What of an order is kept: column → value now.
KEPT_OF_ORDER = {
    "status": "orders.status",
    "refund_amt": "orders.refund_amt",
    "shipping_type": "orders.shipping_type",
    "order_date": "orders.order_date",
    "item_count": "coalesce(orders.shipping_item_count, orders.items_quantity)",
}

# Orders of the open session whose items, as a bag, are not those that it keeps. At most one session of a seller is open.
OTHER_ITEMS = f"""
SELECT DISTINCT order_id FROM (
    SELECT order_id FROM (
        SELECT k.order_id, {_PULLED}, 1 AS sign
          FROM pull_session s JOIN pull_session_item k ON k.seller_id = s.seller_id AND k.session_id = s.id
         WHERE s.seller_id = :seller AND s.state = 'open' AND k.seller_id = :seller
        UNION ALL
        SELECT i.order_id, {", ".join(f"i.{name}" for name in _PULLED.split(", "))}, -1
          FROM pull_session s JOIN pull_session_order p ON p.seller_id = s.seller_id AND p.session_id = s.id
          JOIN order_item i ON i.seller_id = p.seller_id AND i.order_id = p.order_id
         WHERE s.seller_id = :seller AND s.state = 'open' AND p.seller_id = :seller AND i.seller_id = :seller
    ) AS lines GROUP BY order_id, {_PULLED} HAVING sum(sign) <> 0
) AS others
"""


def _differs(name: str, now: str) -> str:
    # A shipment that its seller announced is no surprise.
    but = f" AND NOT {SHIPPED_AS_MARKED}" if name == "status" else ""
    return f"CASE WHEN {now} IS DISTINCT FROM p.{name}{but} THEN '{name}' END"


# The names of what differs.
CHANGED = f"""array_remove(ARRAY[{", ".join(_differs(name, now) for name, now in KEPT_OF_ORDER.items())},
 CASE WHEN d.order_id IS NOT NULL THEN 'items' END], NULL)"""
