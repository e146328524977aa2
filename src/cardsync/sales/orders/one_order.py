"""Reads one order in full: every item with its card and shelves, and the order's pull sessions."""

from __future__ import annotations

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.derived.sales_by_day import SHARED
from cardsync.platform.shelf_place import BOX, NAMED, WAY
from cardsync.sales.limits import PULL_SESSIONS_SHOWN, SETTLED_CARDS_SHOWN
from cardsync.sales.orders.schemas import (
    ORDER_COLUMNS,
    CardOfItem,
    ItemRow,
    OneOrder,
    PullRow,
    order_row,
    settled_row,
)
from cardsync.stock.cards.visible import VISIBLE

_ORDER = f"""
    SELECT {ORDER_COLUMNS} FROM orders
     WHERE orders.seller_id = :seller AND orders.id = :order
"""
_ITEMS = queries_of(__package__)["items_of_order"].format(
    fields=", ".join(f"i.{name}" for name in ItemRow._fields),
    shared=SHARED,
    box=BOX,
    way=WAY,
    named=NAMED,
    visible=VISIBLE,
)
_PULLS = """
    SELECT s.id, s.state, s.opened_at, p.pulled_at
      FROM pull_session_order p
      JOIN pull_session s ON s.seller_id = :seller AND s.id = p.session_id
     WHERE p.seller_id = :seller AND p.order_id = :order
     ORDER BY s.opened_at DESC, s.id DESC LIMIT :sessions
"""
_SETTLED = """
    SELECT i.item_id, i.product_name, i.condition, i.missing_reason, i.missing_outcome,
           i.missing_refund, i.missing_copy, i.missing_note, i.settled_at
      FROM pull_session_item i
      JOIN pull_session s ON s.seller_id = :seller AND s.id = i.session_id
     WHERE i.seller_id = :seller AND i.order_id = :order AND i.missing_outcome IS NOT NULL
       AND s.state <> 'cancelled'
     ORDER BY i.settled_at DESC, i.item_id LIMIT :settled
"""


async def read_order(reading: Reading, caller: Caller, order_id: int) -> OneOrder:
    """Read one order. Raises NotFound."""
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "order": order_id,
        "sessions": PULL_SESSIONS_SHOWN,
        "settled": SETTLED_CARDS_SHOWN,
    }
    orders, items, pulls, settled = await reading.together(
        [_ORDER, _ITEMS, _PULLS, _SETTLED], values, last=True
    )
    if not orders:
        raise errors.NotFound(f"there is no order {order_id}")
    width = len(ItemRow._fields)
    return OneOrder(
        order_row(orders[0], caller),
        [(ItemRow._make(row[:width]), CardOfItem._make(row[width:])) for row in items],
        [PullRow._make(row) for row in pulls],
        [settled_row(row, caller) for row in settled],
    )
