"""The page of orders that the address's filters find. Its tabs count the orders to ship, on the
way, delivered and refunded. A member can pull, ship or print the ticked orders of the table
together; one order may be open beside the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from litestar import get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.frame import PART
from cardsync.dashboard.shell import PageRequest, TemplateValues, games_of, show, url
from cardsync.platform import clock, errors, limits
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.sales.lots import profit
from cardsync.sales.orders.one_order import read_order
from cardsync.sales.orders.order_filter import OrderFilter, read_filter
from cardsync.sales.orders.pullable import to_ship
from cardsync.sales.orders.queries import find_orders, state_counts
from cardsync.sales.orders.schemas import OrderInFull, OrderRow, order_body, order_in_full
from cardsync.shop.today.conditions import ship_by
from cardsync.web.request import reading

# The number of items that the row of an order names.
_NAMED = 2
STATES: Final = {
    "to_ship": "To ship",
    "on_the_way": "On the way",
    "delivered": "Delivered",
    "refunded": "Refunded",
}
_NO_FILTER: Final = frozenset({"done", "undo", "order", "sort", "direction", "page", "per_page"})


def _wanted(request: PageRequest) -> OrderFilter:
    """Return the address's filter. Without a filter, the page shows the orders to ship. These are
    sorted by deadline, unless the address names a sort. Raises InvalidPayload.
    """
    given = request.query_params.dict()
    every = given.get("state") == ["all"]
    wanted = read_filter({**given, "state": []} if every else given)
    if not every and not set(given) - _NO_FILTER:
        wanted = replace(wanted, state="to_ship")
    if wanted.state == "to_ship" and not given.keys() & {"sort", "direction"}:
        wanted = replace(wanted, direction="asc")
    return replace(wanted, items_per_order=_NAMED, counted=False)


@get("/orders")
async def orders_page(request: PageRequest, caller: Caller) -> Template:
    wanted = _wanted(request)
    async with reading(request) as reads:
        # `find_orders` is the last read of a reading, so `state_counts` is read first.
        states = await state_counts(reads, caller)
        found = await find_orders(reads, caller, wanted)
    if found.has_more and _filters(wanted) == {"state": wanted.state} and not wanted.statuses:
        # The tab of the state has counted them.
        found = replace(found, total=getattr(states, str(wanted.state)), has_more=False)
    peek = await _peek(request, caller)
    due = _deadlines(caller, found.orders)
    return show(
        request,
        caller,
        "orders.html",
        orders=[order_body(order, found.items.get(order.id, ())) for order in found.orders],
        total=found.total,
        has_more=found.has_more,
        total_pages=wanted.of(found.total).total_pages,
        statuses=[("", "All"), *((one, one) for one in found.status_counts if one)],
        states=states,
        state_names=STATES,
        worth=caller.revenue(states.worth),
        due=due,
        due_now=sum(one.runs for one in due.values()) if len(due) == states.to_ship else 0,
        today=caller.today(clock.now()),
        under_way=next((one for one in found.sessions if one.status == "open"), None),
        wanted=wanted,
        games=games_of(caller),
        address=partial(address_of, wanted),
        to_ship={order.id for order in found.orders if waits(order)},
        **peek,
        filtered=bool(_filters(wanted).keys() - {"state"} or wanted.statuses),
    )


@get("/orders/peek", opt=PART)
async def peek_at_order(request: PageRequest, caller: Caller) -> Template:
    """Show one order as the part of the page beside the table."""
    wanted = _wanted(request)
    return show(
        request,
        caller,
        "order_peek.html",
        **await _peek(request, caller),
        today=caller.today(clock.now()),
        wanted=wanted,
        address=partial(address_of, wanted),
    )


async def _peek(request: PageRequest, caller: Caller) -> TemplateValues:
    """Return the values of the order that the address names, with its profit; empty ones if there
    is no such order.
    """
    nothing = {"peek": None, "earned": None, "may_ship": False, "by": None}
    order_id = read_id(request.query_params.get("order", ""))
    if order_id is None:
        return nothing
    async with reading(request) as reads:
        try:
            found = await read_order(reads, caller, order_id)
        except errors.NotFound:
            return nothing
        earned = await profit.of_orders(reads, caller, [order_id]) if caller.sees_revenue else None
    order = order_in_full(found)
    by = _deadlines(caller, [found.order]).get(order_id)
    return {"peek": order, "earned": earned, "may_ship": waits(order), "by": by}


class Deadline(NamedTuple):
    """The day by which an order must be shipped. `runs` is true if it is today or in the past."""

    day: date
    runs: bool


def _deadlines(caller: Caller, orders: Iterable[OrderRow]) -> dict[int, Deadline]:
    """Return the deadlines of those orders that must still be shipped."""
    zone = ZoneInfo(caller.account.time_zone)
    today = clock.now().astimezone(zone).date()
    due = {}
    for order in orders:
        if order.order_placed_at is not None and waits(order):
            moment = ship_by(order.order_placed_at, caller.account.ship_within_days)
            day = moment.astimezone(zone).date()
            due[order.id] = Deadline(day, day <= today)
    return due


def waits(order: OrderRow | OrderInFull) -> bool:
    """Return whether an order must still be marked as shipped. Pure."""
    refund = None if order.refund_amt is None else Decimal(order.refund_amt)
    return to_ship(order.status, refund) and order.shipped_marked_at is None


def _filters(wanted: OrderFilter) -> TemplateValues:
    """Return the filters that are set, except the status, as parameters of the address."""
    named = {
        "search": wanted.search,
        "date_from": wanted.date_from and wanted.date_from.isoformat(),
        "date_to": wanted.date_to and wanted.date_to.isoformat(),
        "product_line": wanted.product_line,
        "refund": "true" if wanted.refunded else "",
        "unfeedbacked": "true" if wanted.unfeedbacked else "",
        "shipping_type": wanted.shipping_type,
        "ship_mark": "pending" if wanted.ship_pending else "",
        "state": wanted.state,
        "pull_session": "" if wanted.pull_session is None else str(wanted.pull_session),
    }
    return {name: value for name, value in named.items() if value}


def _falls(wanted: OrderFilter) -> str:
    """Return the default direction of a sort; an address omits it. Pure."""
    return "asc" if wanted.state == "to_ship" and wanted.sort == "date" else "desc"


def address_of(wanted: OrderFilter, **changed: object) -> str:
    """Return the address of the same table with the changed parameters."""
    query = _filters(wanted) | {
        "status": list(wanted.statuses),
        "sort": "" if wanted.sort == "date" else wanted.sort,
        "direction": "" if wanted.direction == _falls(wanted) else wanted.direction,
        "page": None,
        "per_page": "" if wanted.per_page == limits.ORDERS_PER_PAGE else wanted.per_page,
    }
    asked = query | changed
    # The address of the orders to ship has no filter, so the address of all orders has the filter
    # "all".
    filters = {name for name, value in asked.items() if value not in (None, "", [])} - _NO_FILTER
    if not filters:
        asked["state"] = "all"
    elif filters == {"state"} and asked["state"] == "to_ship":
        asked["state"] = ""
    return url("/orders", **asked)
