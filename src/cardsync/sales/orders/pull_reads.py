"""Reads pull sessions: the counts of each session, and its orders in work order.

Orders and items have their values when the session was opened. `changed` lists the values that an
upload has changed: until now in an open session, until its end in an ended session.
"""

from __future__ import annotations

import msgspec

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of, found
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import in_one_message
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.sales.limits import PULL_SESSIONS_SHOWN
from cardsync.sales.orders.pull_changes import CHANGED
from cardsync.sales.orders.pull_schemas import PullItem, PullOrder, PullSession, PullSessionOrders
from cardsync.sales.orders.pullable import NEEDS_REVIEW
from cardsync.sales.orders.work_order import ToPull, items_in_order, work_order
from cardsync.stock.shelving.places import places_of_items

_IN_REVIEW = f"(CASE WHEN s.state = 'open' THEN {NEEDS_REVIEW} ELSE p.in_review END)"
_CHANGED = f"(CASE WHEN s.state = 'open' THEN {CHANGED} ELSE p.changed END)"

# The statement finds each order of the open session by its key, even if statistics of the tables
# are missing. It does not read the orders of ended sessions.
SUMMARIES = queries_of(__package__)["summaries"].format(needs_review=NEEDS_REVIEW, changed=CHANGED)

# The newest sessions, newest first.
RECENT = SUMMARIES.format(
    sessions="SELECT id FROM pull_session WHERE seller_id = :seller"
    f" ORDER BY opened_at DESC LIMIT {PULL_SESSIONS_SHOWN}"
)

ORDERS = f"""
SELECT orders.id, orders.order_number, orders.buyer_name, p.order_date, p.status, p.shipping_type,
       p.item_count, orders.shipped_marked_at, p.pulled_at, p.missing_at, p.deferred_turn,
       {_IN_REVIEW} AS in_review, {_CHANGED} AS changed
  FROM pull_session s
  JOIN pull_session_order p ON p.seller_id = s.seller_id AND p.session_id = s.id
  JOIN orders ON orders.seller_id = p.seller_id AND orders.id = p.order_id
 WHERE s.seller_id = :seller AND p.seller_id = :seller AND orders.seller_id = :seller
   AND s.id = :session
"""

ITEMS = """
SELECT order_id, item_id, product_name, product_line, condition, set_name, rarity, quantity,
       main_photo_url
  FROM pull_session_item WHERE seller_id = :seller AND session_id = :session
"""


async def summary(source: Source, caller: Caller, session_id: int) -> PullSession:
    named = {"seller": caller.seller_id, "session": session_id}
    for row in await found(source, SUMMARIES.format(sessions=":session"), named):
        return PullSession(*row)
    raise errors.NotFound(f"there is no pull session {session_id}")


async def recent(source: Source, caller: Caller) -> list[PullSession]:
    """Return the newest sessions, newest first."""
    rows = await found(source, RECENT, {"seller": caller.seller_id})
    return [PullSession(*row) for row in rows]


async def in_full(source: Source, caller: Caller, session_id: int) -> PullSessionOrders:
    """Return a session with its orders in work order, and each order's items in shelf order. Raises
    NotFound.
    """
    session_summary, orders = await each_of(
        source, summary(source, caller, session_id), _orders_of(source, caller, session_id)
    )
    return PullSessionOrders(**msgspec.structs.asdict(session_summary), orders=orders)


async def _orders_of(source: Source, caller: Caller, session_id: int) -> list[PullOrder]:
    named = {"seller": caller.seller_id, "session": session_id}
    places, (item_rows, order_rows) = await each_of(
        source,
        places_of_items(source, caller.seller_id, session_id),
        in_one_message(source, [ITEMS, ORDERS], named),
    )
    items: dict[int, dict[int, PullItem]] = {}
    for order_id, *columns in item_rows:
        place = places.get(columns[0])
        columns.append(place and place.code)
        item = PullItem(*columns)
        items.setdefault(order_id, {})[item.id] = item
    orders, to_pull = {}, []
    for row in order_rows:
        mine = items.get(row.id, {})
        in_order = [mine[id] for id in items_in_order(mine, places.get)]
        order = struct_of(PullOrder, row, caller, items=in_order)
        orders[order.id] = order
        ids = [item.id for item in order.items]
        to_pull.append(
            ToPull(order.id, order.shipping_type, order.order_date, ids, row.deferred_turn)
        )
    return [orders[id] for id in work_order(to_pull, places.get)]
