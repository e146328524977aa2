"""HTTP routes of pull sessions and of the marks of single orders."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, post
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.value_types import HandlerOptions
from cardsync.sales.errors import PullSessionOpen
from cardsync.sales.limits import PULL_STATUSES
from cardsync.sales.orders import pull_marks, pull_reads, pull_sessions, reopen_pulls
from cardsync.sales.orders.order_filter import read_filter
from cardsync.sales.orders.pull_schemas import (
    ManyMarked,
    OrderMarks,
    PullSession,
    PullSessionOrders,
)
from cardsync.web.request import BEHIND_A_KEY, FOR_EITHER, WITH_JSON_BODY, problems

Id = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


# A filter of the list of orders, whose query parameters are texts.
Words = Annotated[str, msgspec.Meta(max_length=limits.FILTER_CHARACTERS)]
Filter = Words | int | bool | None


class OpenPullSession(msgspec.Struct):
    """Selects the orders to pull: with the filters of GET /api/orders, the matching orders; with
    `order_ids`, only these; with neither, all orders. Orders that can't be pulled are skipped.
    """

    order_ids: Annotated[list[Id], msgspec.Meta(max_length=limits.UPLOAD_ROWS)] | None = None
    status: Annotated[list[Words], msgspec.Meta(max_length=PULL_STATUSES)] | Words | None = None
    """Only orders of these statuses"""
    search: Filter = None
    date_from: Filter = None
    date_to: Filter = None
    product_line: Filter = None
    refund: Filter = None
    unfeedbacked: Filter = None
    shipping_type: Filter = None
    ship_mark: Filter = None
    pull_session: Filter = None
    state: Filter = None

    def filters(self) -> dict[str, list[str]]:
        """Return the filters in the form of query parameters."""
        given = {
            name: getattr(self, name) for name in self.__struct_fields__ if name != "order_ids"
        }
        return {name: _texts(value) for name, value in given.items() if value is not None}


def _texts(value: list[str] | Filter) -> list[str]:
    if isinstance(value, list):
        return value
    return [str(value).lower() if isinstance(value, bool) else str(value)]


@post(
    "/pull_sessions",
    opt=WRITES,
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, PullSessionOpen),
)
async def open_pull_session(
    caller: Caller,
    session: AsyncSession,
    data: OpenPullSession | None = None,
) -> PullSession:
    """Take a fixed snapshot of the orders to pull. One session is open at a time."""
    asked = data or OpenPullSession()
    wanted = read_filter(asked.filters())
    session_id = await pull_sessions.open_session(
        session,
        caller,
        asked.order_ids,
        wanted,
        clock.now(),
    )
    return await pull_reads.summary(session, caller, session_id)


@get("/pull_sessions/{session_id:int}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def read_pull_session(
    caller: Caller,
    database: Database,
    session_id: int,
) -> PullSessionOrders:
    """A session with its orders in work order."""
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        return await pull_reads.in_full(session, caller, session_id)


ACT: HandlerOptions = {"status_code": 200, "opt": WRITES}
IN_A_SESSION = ACT | {
    "responses": problems(*FOR_EITHER, errors.NotFound, errors.PullSessionNotOpen)
}


@post("/pull_sessions/{session_id:int}/orders/{order_id:int}/pulled", **IN_A_SESSION)
async def mark_order_pulled(
    caller: Caller,
    session: AsyncSession,
    session_id: int,
    order_id: int,
) -> PullSession:
    """Mark the order as pulled: all its copies are in hand."""
    await pull_sessions.mark_pulled(session, caller, session_id, order_id, clock.now())
    return await pull_reads.summary(session, caller, session_id)


@post("/pull_sessions/{session_id:int}/orders/{order_id:int}/defer", **IN_A_SESSION)
async def defer_order(
    caller: Caller,
    session: AsyncSession,
    session_id: int,
    order_id: int,
) -> PullSession:
    """Move the order to the end of the session."""
    await pull_sessions.defer(session, caller, session_id, order_id, clock.now())
    return await pull_reads.summary(session, caller, session_id)


@post("/pull_sessions/{session_id:int}/orders/{order_id:int}/unassign", **IN_A_SESSION)
async def unassign_order(
    caller: Caller,
    session: AsyncSession,
    session_id: int,
    order_id: int,
) -> PullSession:
    """Remove the order from the session; it can be pulled in another session."""
    await pull_sessions.unassign(session, caller, session_id, order_id, clock.now())
    return await pull_reads.summary(session, caller, session_id)


@post("/pull_sessions/{session_id:int}/complete", **IN_A_SESSION)
async def complete_pull_session(
    caller: Caller,
    session: AsyncSession,
    session_id: int,
) -> PullSession:
    """Complete the session. Its pulled orders are ready to ship; all others can be pulled in
    another session.
    """
    await pull_sessions.end_session(session, caller, session_id, "completed", clock.now())
    return await pull_reads.summary(session, caller, session_id)


@post("/pull_sessions/{session_id:int}/cancel", **IN_A_SESSION)
async def cancel_pull_session(
    caller: Caller,
    session: AsyncSession,
    session_id: int,
) -> PullSession:
    """Cancel the session; its orders can be pulled in another session."""
    await pull_sessions.end_session(session, caller, session_id, "cancelled", clock.now())
    return await pull_reads.summary(session, caller, session_id)


OF_AN_ORDER = ACT | {"responses": problems(*FOR_EITHER, errors.NotFound)}


@post("/orders/{order_id:int}/dismiss", **OF_AN_ORDER)
async def dismiss_order(caller: Caller, session: AsyncSession, order_id: int) -> OrderMarks:
    """Dismiss the order: it is removed from the open session, and skipped in later sessions."""
    return await pull_marks.dismiss(session, caller, order_id, clock.now())


@post("/orders/{order_id:int}/undismiss", **OF_AN_ORDER)
async def undismiss_order(caller: Caller, session: AsyncSession, order_id: int) -> OrderMarks:
    """Undo a dismissal; the order can be pulled again."""
    return await pull_marks.undismiss(session, caller, order_id, clock.now())


@post(
    "/orders/{order_id:int}/mark_shipped",
    **ACT,
    responses=problems(*FOR_EITHER, errors.NotFound, errors.CardMissing),
)
async def mark_order_shipped(
    caller: Caller, session: AsyncSession, order_id: int, confirm: bool = False
) -> OrderMarks:
    """Mark the order as shipped; the mark is pending until an upload confirms it. An order with an
    undecided missing card is refused, unless `confirm` is true.
    """
    now = clock.now()
    return await pull_marks.mark_shipped(session, caller, order_id, now, confirmed=confirm)


class OrdersToMark(msgspec.Struct):
    """With `confirm`, orders with an undecided missing card are marked, too."""

    order_ids: Annotated[list[Id], msgspec.Meta(min_length=1, max_length=limits.UPLOAD_ROWS)]
    confirm: bool = False


@post(
    "/orders/mark_shipped",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY),
)
async def mark_orders_shipped(
    caller: Caller, session: AsyncSession, data: OrdersToMark
) -> ManyMarked:
    """Mark the orders that are not shipped yet as shipped. One undo removes all marks. Orders with
    an undecided missing card are not marked, and are listed in `missing`.
    """
    return await pull_marks.mark_many_shipped(
        session, caller, data.order_ids, clock.now(), confirmed=data.confirm
    )


@post("/orders/{order_id:int}/unmark_shipped", **OF_AN_ORDER)
async def unmark_order_shipped(caller: Caller, session: AsyncSession, order_id: int) -> OrderMarks:
    """Remove the shipped mark; the order is to be shipped."""
    return await pull_marks.unmark_shipped(session, caller, order_id, clock.now())


@post("/orders/{order_id:int}/unmark_pulled", **OF_AN_ORDER)
async def unmark_order_pulled(caller: Caller, session: AsyncSession, order_id: int) -> OrderMarks:
    """Mark the order as not pulled; it can be pulled again."""
    await reopen_pulls.pull_again(session, caller, order_id, clock.now())
    return await pull_marks.marks_of(session, caller, order_id)


router = Router(
    path="",
    route_handlers=[
        open_pull_session,
        read_pull_session,
        mark_order_pulled,
        defer_order,
        unassign_order,
        complete_pull_session,
        cancel_pull_session,
        dismiss_order,
        undismiss_order,
        mark_order_shipped,
        unmark_order_shipped,
        unmark_order_pulled,
        mark_orders_shipped,
    ],
    tags=["pulls"],
)
