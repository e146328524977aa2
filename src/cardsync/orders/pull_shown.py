"""The JSON structs of pull sessions, and the functions that fill them from rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

import msgspec

from cardsync import clock
from cardsync.orders import pull_marks, pull_reads
from cardsync.orders.models import PullState


class PullSession(msgspec.Struct):
    id: int
    status: PullState
    opened_at: str
    completed_at: str | None
    order_count: int
    item_count: int
    pulled_count: int
    review_count: int


class PullOrder(msgspec.Struct):
    """The order as it was when the session was opened. `changed` names what an upload made
    another since (`items`: cards or quantities); then the order `needs_review`. `in_review`: it
    is no longer to be pulled. `missing_at`: a card of it was not found, so it `needs_review`, too.
    `deferred`: pushed to the end.
    """

    id: int
    order_number: str
    buyer_name: str | None
    order_date: date | None
    status: str | None
    shipping_type: str
    item_count: int
    shipped_marked_at: str | None
    pulled_at: str | None
    missing_at: str | None
    deferred: bool
    in_review: bool
    changed: list[str]
    needs_review: bool
    items: list[pull_reads.PullItem]


class PullSessionOrders(PullSession, kw_only=True):
    orders: list[PullOrder]


class OrderMarks(msgspec.Struct):
    id: int
    shipped_marked_at: str | None
    marked_shipped_pending: bool
    pull_dismissed_at: str | None


def _moment(moment: datetime | None) -> str | None:
    return clock.rfc3339(moment) if moment else None


def _told(row: pull_reads.Summary) -> dict[str, Any]:
    return row._asdict() | {
        "opened_at": clock.rfc3339(row.opened_at),
        "completed_at": _moment(row.completed_at),
    }


def _order(row: pull_reads.PullOrder) -> PullOrder:
    fields = row._asdict()
    deferred = fields.pop("deferred_turn") is not None
    times = {
        name: _moment(fields[name]) for name in ("shipped_marked_at", "pulled_at", "missing_at")
    }
    return PullOrder(**fields | times | {"deferred": deferred, "needs_review": row.needs_review})


def pull_session_orders(
    row: pull_reads.Summary, orders: Iterable[pull_reads.PullOrder]
) -> PullSessionOrders:
    return PullSessionOrders(**_told(row), orders=[_order(order) for order in orders])


def pull_session(row: pull_reads.Summary) -> PullSession:
    return PullSession(**_told(row))


def order_marks(row: pull_marks.Marks) -> OrderMarks:
    return OrderMarks(
        row.id,
        _moment(row.shipped_marked_at),
        row.marked_shipped_pending,
        _moment(row.pull_dismissed_at),
    )
