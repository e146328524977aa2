"""The page of orders, by the address's filters and order: tabs with the number of orders of each
status, a table, and beside it the order that is open.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from litestar import get
from litestar.response import Template

from cardsync import errors, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.cards.bulk_selection import read_id
from cardsync.dashboard.shell import PageRequest, games_of, show, url
from cardsync.orders.one_order import read_order
from cardsync.orders.order_filter import OrderFilter, read_filter
from cardsync.orders.pullable import to_ship
from cardsync.orders.queries import find_orders
from cardsync.orders.shown import OrderInFull, OrderRow, order_body, order_in_full
from cardsync.web.request import reading

# The number of items that an order's row names.
_NAMED = 2


@get("/orders", opt=BY_FORM)
async def orders_page(request: PageRequest, caller: Caller) -> Template:
    wanted = replace(read_filter(request.query_params.dict()), items_per_order=_NAMED)
    async with reading(request) as reads:
        found = await find_orders(reads, caller, wanted)
    peek = await _peek(request, caller)
    return show(
        request,
        caller,
        "orders.html",
        orders=[order_body(order, found.items.get(order.id, ())) for order in found.orders],
        total=found.total,
        total_pages=-(-found.total // wanted.per_page),
        status_counts=found.status_counts,
        everything=sum(found.status_counts.values()),
        under_way=next((one for one in found.sessions if one.status == "open"), None),
        wanted=wanted,
        games=games_of(caller),
        address=partial(address_of, wanted),
        to_ship={order.id for order in found.orders if _waits(order)},
        peek=peek,
        may_ship=peek is not None and _waits(peek),
        filtered=bool(_filters(wanted) or wanted.statuses),
    )


@get("/orders/peek", opt=BY_FORM)
async def peek_at_order(request: PageRequest, caller: Caller) -> Template:
    """Show one order beside the table, without the table."""
    wanted = read_filter(request.query_params.dict())
    peek = await _peek(request, caller)
    return show(
        request,
        caller,
        "order_peek.html",
        peek=peek,
        may_ship=peek is not None and _waits(peek),
        wanted=wanted,
        address=partial(address_of, wanted),
    )


async def _peek(request: PageRequest, caller: Caller) -> OrderInFull | None:
    """Return the order that the address names, if it is there."""
    order_id = read_id(request.query_params.get("order", ""))
    if order_id is None:
        return None
    async with reading(request) as reads:
        try:
            return order_in_full(await read_order(reads, caller, order_id))
        except errors.NotFound:
            return None


def _waits(order: OrderRow | OrderInFull) -> bool:
    refund = None if order.refund_amt is None else Decimal(order.refund_amt)
    return to_ship(order.status, refund) and order.shipped_marked_at is None


def _filters(wanted: OrderFilter) -> dict[str, Any]:
    """Return the filters that are set, as the address has them, apart from the status."""
    named = {
        "search": wanted.search,
        "date_from": wanted.date_from and wanted.date_from.isoformat(),
        "date_to": wanted.date_to and wanted.date_to.isoformat(),
        "product_line": wanted.product_line,
        "refund": "true" if wanted.refunded else "",
        "unfeedbacked": "true" if wanted.unfeedbacked else "",
        "shipping_type": wanted.shipping_type,
        "ship_mark": "pending" if wanted.ship_pending else "",
        "pull_session": "" if wanted.pull_session is None else str(wanted.pull_session),
    }
    return {name: value for name, value in named.items() if value}


def address_of(wanted: OrderFilter, **changed: Any) -> str:
    """Return the address of the same page with other parameters."""
    query = _filters(wanted) | {
        "status": list(wanted.statuses),
        "sort": "" if wanted.sort == "date" else wanted.sort,
        "direction": "" if wanted.direction == "desc" else wanted.direction,
        "page": None,
        "per_page": "" if wanted.per_page == limits.ORDERS_PER_PAGE else wanted.per_page,
    }
    return url("/orders", **query | changed)
