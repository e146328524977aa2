"""HTTP routes for reading orders and customers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from litestar import Response, Router, get
from litestar.openapi.spec import OpenAPIType, Operation, Schema
from litestar.params import QueryParameter

from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.sales.limits import (
    ITEMS_PER_ORDER,
    ITEMS_PER_ORDER_MOST,
    ORDERS_PER_PAGE_MOST,
    SOLD_ORDERS_MOST,
)
from cardsync.sales.orders.as_csv import customers_as_csv, orders_as_csv
from cardsync.sales.orders.customer_list import customers
from cardsync.sales.orders.of_card import SoldPage, orders_of_card
from cardsync.sales.orders.one_order import read_order
from cardsync.sales.orders.order_filter import Given, read_filter, read_page
from cardsync.sales.orders.queries import FoundOrders, find_orders
from cardsync.sales.orders.schemas import (
    CustomersPage,
    OrderBody,
    OrderInFull,
    OrdersPage,
    order_body,
    order_in_full,
)
from cardsync.web import as_csv
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.own_queries import TEXT, TEXTS, described, words
from cardsync.web.request import (
    BEHIND_A_KEY,
    AnyRequest,
    ApiRequest,
    Polled,
    problems,
    provide_caller,
    provide_heavy,
    reading,
)

# An answer with more items than this is built in a thread, so that other requests do not wait.
_AT_ONCE = 2_000


def _number(default: int, least: int, most: int) -> Schema:
    # A number outside the range is clamped, not rejected, so only the description has the range.
    return Schema(
        type=OpenAPIType.INTEGER,
        default=default,
        description=f"Clamped to {least} … {most:,}",
    )


_DATE = Schema(type=OpenAPIType.STRING, description="YYYY-MM-DD, included")
_SWITCH = words("true", "false", "1", "0")
_PAGE = {
    "page": ("Beyond the last page there is nothing", _number(1, 1, limits.PAGE_MOST)),
    "per_page": (
        "Orders of a page",
        _number(limits.ORDERS_PER_PAGE, 1, ORDERS_PER_PAGE_MOST),
    ),
}
_ORDERS = {
    **_PAGE,
    "sort": ("By date by default", words("date", "total", "buyer", "status", "number")),
    "direction": (
        "desc by default; orders without the value come last both ways",
        words("asc", "desc"),
    ),
    "status": ("One or more statuses as in status_counts, or `all`", TEXTS),
    "search": ("Part of the order number or of the buyer's name, whatever its case", TEXT),
    "date_from": ("order_date is this or later", _DATE),
    "date_to": ("order_date is this or earlier", _DATE),
    "product_line": ("Orders with an item of this game", TEXT),
    "refund": ("true: refunded orders only", _SWITCH),
    "unfeedbacked": ("true: orders without feedback only", _SWITCH),
    "shipping_type": ("How they are shipped", words("pwe", "tracked", "expedited")),
    "ship_mark": ("Marked as shipped and not synced back yet", words("pending")),
    "pull_session": (
        "A session's id, `active`, `none` (can be pulled), `dismissed`, `pulled`, or `missing` a card",
        TEXT,
    ),
    "state": (
        "Where the order is: to_ship and not marked shipped, on_the_way, delivered, or refunded",
        words("to_ship", "on_the_way", "delivered", "refunded"),
    ),
    "items_per_order": (
        "So many items of each order; 0 leaves them out",
        _number(ITEMS_PER_ORDER, 0, ITEMS_PER_ORDER_MOST),
    ),
    "items": ("Every item of every order", words("full")),
}


_OF_EXPORT = [
    name
    for name in _ORDERS
    if name not in (*_PAGE, "sort", "direction", "items_per_order", "items")
]


@dataclass
class _OrdersQuery(Operation):
    """Adds the OpenAPI parameters of GET /orders, which reads its query itself, so that it can
    write its own error messages.
    """

    def __post_init__(self) -> None:
        self.parameters = described(_ORDERS)


@dataclass
class _CustomersQuery(Operation):
    def __post_init__(self) -> None:
        self.parameters = described(_PAGE)


def _given(request: AnyRequest) -> Given:
    return request.query_params.dict()


def _bodies(found: FoundOrders) -> list[OrderBody]:
    return [order_body(order, found.items.get(order.id, ())) for order in found.orders]


@get(
    "/orders",
    operation_class=_OrdersQuery,
    responses=problems(*BEHIND_A_KEY, errors.InvalidPayload),
)
async def orders(request: ApiRequest) -> Polled[OrdersPage]:
    """The seller's orders, newest first, with their items; and the seller's newest pull
    sessions.
    """
    wanted = read_filter(_given(request))
    async with reading(request) as reads:
        found = await find_orders(reads, provide_caller(request), wanted)
    many = sum(map(len, found.items.values())) > _AT_ONCE
    return Polled(
        OrdersPage(
            orders=await asyncio.to_thread(_bodies, found) if many else _bodies(found),
            **wanted.of(found.total)._asdict(),
            status_counts=found.status_counts,
            pull_sessions=found.sessions,
        )
    )


@dataclass
class _ExportQuery(Operation):
    """Adds the OpenAPI parameters of the export: the filters of GET /orders."""

    def __post_init__(self) -> None:
        self.parameters = described({name: _ORDERS[name] for name in _OF_EXPORT})


@get(
    "/orders/export.csv",
    operation_class=_ExportQuery,
    responses={
        200: as_csv.answer("The orders by id"),
        **problems(*BEHIND_A_KEY, errors.InvalidPayload),
    },
)
async def export_orders(request: ApiRequest) -> Response[bytes]:
    """All orders that match the filter, as a streamed CSV."""
    state = request.app.state
    parts = await orders_as_csv(
        provide_heavy(state), provide_caller(request), read_filter(_given(request))
    )
    return as_csv.file(parts, "orders")


@get(
    "/customers/export.csv",
    responses={
        200: as_csv.answer("The customers by what their orders add up to"),
        **problems(*BEHIND_A_KEY),
    },
)
async def export_customers(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    """All customers, as a streamed CSV."""
    return as_csv.file(await customers_as_csv(heavy, caller), "customers")


@get(
    "/cards/{card_id:int}/orders",
    responses=problems(*BEHIND_A_KEY, errors.NotFound, errors.InvalidPayload),
)
async def sold_orders(
    caller: Caller,
    database: Database,
    settings: Settings,
    card_id: int,
    after: Annotated[
        int | None, QueryParameter(ge=1, le=limits.LARGEST_ID, description="Behind this order")
    ] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=SOLD_ORDERS_MOST)] = 20,
) -> SoldPage:
    """The orders that contain the card, newest first."""
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        return await orders_of_card(reads, caller, card_id, after, limit)


@get("/orders/{order_id:int}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def order(request: ApiRequest, order_id: int) -> Polled[OrderInFull]:
    """One order with every item, the places of its cards, and its pull sessions."""
    async with reading(request) as reads:
        found = await read_order(reads, provide_caller(request), order_id)
    return Polled(order_in_full(found))


@get("/customers", operation_class=_CustomersQuery, responses=problems(*BEHIND_A_KEY))
async def buyers(request: ApiRequest) -> Polled[CustomersPage]:
    """The seller's customers, highest total of their orders first, and the share of customers with
    more than one order.
    """
    paging = read_page(_given(request))
    async with reading(request) as reads:
        found = await customers(reads, provide_caller(request), paging)
    return Polled(
        CustomersPage(
            customers=found.page,
            **paging.of(found.total)._asdict(),
            repeat_rate=round(found.returning / found.total, 4) if found.total else 0.0,
        )
    )


router = Router(
    path="",
    route_handlers=[orders, export_orders, order, buyers, export_customers, sold_orders],
    tags=["orders"],
)
