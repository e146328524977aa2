"""Excludes an order from pulls (`dismiss`), returns it to pulls (`undismiss`), or marks it as
shipped, whether or not it is in a pull session. Each operation is idempotent.

A dismissed order is removed from the open session. The shipped mark does not wait for the
marketplace; the next upload contains the order's real status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Undoing
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.session import run
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.plurals import counted
from cardsync.sales.orders.pull_schemas import ManyMarked, OrderMarks
from cardsync.sales.orders.pull_sessions import need_orders, order_number, take_out
from cardsync.sales.orders.pullable import (
    INCOMPLETE,
    MARKED_SHIPPED_PENDING,
    TO_SHIP_STATUSES,
    UNSHIPPED,
)

# The marks that can be undone (`shop/activity/undo_kinds.py`), each with its column and the words
# for it in messages.
DISMISSED: Final = "order.dismissed"
SHIPPED: Final = "order.marked_shipped"
MANY_SHIPPED: Final = "order.many_marked_shipped"
_UNDONE: Final = {
    DISMISSED: ("pull_dismissed_at", "skipped in pulls"),
    SHIPPED: ("shipped_marked_at", "marked shipped"),
    MANY_SHIPPED: ("shipped_marked_at", "marked shipped anymore"),
}
_UNMARK: Final = """
    UPDATE orders SET {column} = NULL
     WHERE seller_id = :seller AND id = ANY (CAST(:orders AS bigint[])) AND {column} IS NOT NULL
    RETURNING id
"""


async def dismiss(
    session: AsyncSession, caller: Caller, order_id: int, now: datetime
) -> OrderMarks:
    marks = await _mark(
        session,
        caller,
        order_id,
        "pull_dismissed_at",
        now,
        DISMISSED,
        "skipped in pulls",
        now,
    )
    await take_out(session, caller.seller_id, order_id)
    return marks


async def undismiss(
    session: AsyncSession, caller: Caller, order_id: int, now: datetime
) -> OrderMarks:
    return await _mark(
        session,
        caller,
        order_id,
        "pull_dismissed_at",
        None,
        "order.undismissed",
        "returned to pulls",
        now,
    )


async def undo_marks(undoing: Undoing) -> None:
    """Remove the marks that an activity entry set and that still exist. Raises ChangedSince if none
    exists.
    """
    await locked(undoing.session, Lock.SHOP, undoing.seller_id)
    column, reported = _UNDONE[undoing["kind"]]
    entry = {"orders": [undoing.entry.get("order")], "number": None, **undoing.entry}
    if not await undoing.run(_UNMARK.format(column=column), orders=entry["orders"]):
        number = entry["number"]
        which = f"order {number} is no longer" if number else "none of these orders is"
        raise errors.ChangedSince(f"{which} {reported}")


async def mark_shipped(
    session: AsyncSession,
    caller: Caller,
    order_id: int,
    now: datetime,
    *,
    confirmed: bool = False,
) -> OrderMarks:
    """Mark an order as shipped. Raises NotFound, and, unless `confirmed`, CardMissing if a card of
    the order was not found and nobody has decided about it.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    if not confirmed and await _those(session, caller, [order_id], INCOMPLETE):
        raise errors.CardMissing
    return await _mark(
        session,
        caller,
        order_id,
        "shipped_marked_at",
        now,
        SHIPPED,
        "marked shipped",
        now,
    )


_THESE: Final = """
    SELECT orders.id FROM orders
     WHERE orders.seller_id = :seller AND orders.id = ANY (CAST(:ids AS bigint[]))
       AND {condition} ORDER BY orders.id
"""


async def _those(
    source: Source, caller: Caller, order_ids: Sequence[int], condition: str
) -> list[int]:
    values = {"seller": caller.seller_id, "ids": list(order_ids)}
    values["to_ship_statuses"] = [row[0] for row in await found(source, TO_SHIP_STATUSES, values)]
    return [row[0] for row in await found(source, _THESE.format(condition=condition), values)]


async def to_mark(source: Source, caller: Caller, order_ids: Sequence[int]) -> list[int]:
    """Return the ids of the orders that are not shipped yet."""
    return await _those(source, caller, order_ids, UNSHIPPED)


_SHIP_MANY: Final = f"""
    UPDATE orders SET shipped_marked_at = :now
     WHERE orders.seller_id = :seller AND orders.id = ANY (CAST(:ids AS bigint[])) AND {UNSHIPPED}
    RETURNING orders.id
"""


async def mark_many_shipped(
    session: AsyncSession,
    caller: Caller,
    order_ids: Sequence[int],
    now: datetime,
    *,
    confirmed: bool = False,
) -> ManyMarked:
    """Mark the orders that are not shipped yet as shipped; one undo removes all marks. Unless
    `confirmed`, orders with an undecided missing card are not marked, and their ids are returned.
    Raises InvalidPayload for an order that is not the seller's.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    await need_orders(session, caller.seller_id, order_ids)
    missing = [] if confirmed else await _those(session, caller, order_ids, INCOMPLETE)
    whole = sorted(set(order_ids).difference(missing))
    values = {"seller": caller.seller_id, "ids": whole, "now": now}
    to_ship = await session.scalars(text(TO_SHIP_STATUSES), values)
    values["to_ship_statuses"] = to_ship.all()
    marked = sorted(await session.scalars(text(_SHIP_MANY), values))
    if marked:
        note(
            session,
            caller,
            MANY_SHIPPED,
            f"{counted(len(marked), 'order', 'orders')} marked shipped",
            now,
            after={"orders": marked[:20]},
            undo={"kind": MANY_SHIPPED, "orders": marked},
        )
    return ManyMarked(marked, len(set(order_ids)) - len(marked), missing)


async def unmark_shipped(
    session: AsyncSession,
    caller: Caller,
    order_id: int,
    now: datetime,
) -> OrderMarks:
    """Remove the shipped mark; the status of the latest upload decides again."""
    return await _mark(
        session,
        caller,
        order_id,
        "shipped_marked_at",
        None,
        "order.unmarked_shipped",
        "marked not shipped",
        now,
    )


async def _mark(
    session: AsyncSession,
    caller: Caller,
    order_id: int,
    column: str,
    value: datetime | None,
    action: str,
    reported: str,
    now: datetime,
) -> OrderMarks:
    """Set or clear a mark. A mark that is already set keeps its time. Raises NotFound."""
    seller_id = caller.seller_id
    await locked(session, Lock.SHOP, seller_id)
    number = await order_number(session, seller_id, order_id)
    named = {"seller": seller_id, "id": order_id}
    if await _set(session, named, column, value):
        undo = {"kind": action, "order": order_id, "number": number}
        by = undo if action in _UNDONE else None
        note(session, caller, action, f"order {number} {reported}", now, undo=by)
    return await marks_of(session, caller, order_id)


async def marks_of(session: AsyncSession, caller: Caller, order_id: int) -> OrderMarks:
    named = {"seller": caller.seller_id, "id": order_id}
    columns = f"id, shipped_marked_at, {MARKED_SHIPPED_PENDING} AS marked_shipped_pending, pull_dismissed_at"
    row = await session.execute(
        text(f"SELECT {columns} FROM orders WHERE seller_id = :seller AND id = :id"), named
    )
    return struct_of(OrderMarks, row.one())


async def _set(
    session: AsyncSession,
    named: Mapping[str, int],
    column: str,
    value: datetime | None,
) -> bool:
    """Set or clear a mark, and return whether that changed the order. A mark that is already set
    keeps its time.
    """
    unless_so = f"{column} IS {'NOT NULL' if value is None else 'NULL'}"
    statement = f"UPDATE orders SET {column} = :value WHERE seller_id = :seller AND id = :id"
    return await run(session, f"{statement} AND {unless_so}", {**named, "value": value}) > 0
