"""Streams orders or customers as a CSV.

An order that changes during the download appears once, in its old or its new state.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from psycopg.errors import QueryCanceled

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.kit.row_pages import Paging, cut
from cardsync.platform.settings import Settings
from cardsync.sales.orders.customer_list import customers
from cardsync.sales.orders.filter_sql import KNOWN_SESSION, all_conditions, all_of, unknown_session
from cardsync.sales.orders.order_filter import OrderFilter
from cardsync.sales.orders.pullable import TO_SHIP_STATUSES
from cardsync.sales.orders.schemas import (
    ORDER_COLUMNS,
    OrderRow,
    order_body,
    order_row,
)
from cardsync.web.csv_parts import PART, Part, lines_of, part_of, streamed
from cardsync.web.heavy_work import HeavyWork

_ORDERS: Final = CsvTable(
    ("id", "order_number", "buyer_name", "order_date", "order_placed_at", "status", "product_amt",
     "shipping_amt", "total_amt", "shipping_type", "item_count", "shipped_marked_at",
     "pull_dismissed_at", "pulled_at", "missing_count", "refund_type", "refund_origin",
     "refund_amt", "refund_reason", "refund_note", "feedback_rating", "feedback_comment")
)  # fmt: skip
_CUSTOMERS: Final = CsvTable(("buyer_name", "order_count", "first_order_at", "last_order_at"))
_WITH_REVENUE: Final = CsvTable((*_CUSTOMERS.names, "lifetime_total", "pieces", "costed", "profit"))
# Customers per part. A part may have to sum all orders again, so parts are large.
CUSTOMERS: Final = 10_000


async def orders_as_csv(
    heavy: HeavyWork, caller: Caller, wanted: OrderFilter
) -> AsyncIterator[bytes]:
    """Return the orders that match a filter as a CSV, sorted by id. Raises InvalidPayload."""
    return await streamed(heavy, caller, _ORDERS, part_of_orders, wanted.asked_by(caller))


async def part_of_orders(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    after: int,
    wanted: OrderFilter,
) -> Part:
    """Return the part of the CSV with the orders after the id `after`. Raises InvalidPayload."""
    seconds = settings.read_seconds
    try:
        rows = await _orders(database, caller, wanted, after, seconds)
    except QueryCanceled as e:
        raise errors.InvalidPayload(
            f"search: it takes longer than {seconds:g} s: narrow the search"
        ) from e
    page = cut(rows, PART, lambda row: row.id)
    return await part_of(_ORDERS, page, lambda row: order_body(row, ()))


async def _orders(
    database: Database,
    caller: Caller,
    wanted: OrderFilter,
    after: int,
    seconds: float,
) -> list[OrderRow]:
    conditions, more = all_conditions(wanted)
    statement = (
        f"SELECT {ORDER_COLUMNS} FROM orders"
        f" WHERE {all_of(*conditions, 'orders.id > :after')} ORDER BY orders.id LIMIT :limit"
    )
    values = {"seller": caller.seller_id, "after": after, "limit": PART + 1, **more}
    async with database.readings.of(caller.seller_id, seconds) as reading:
        if isinstance(wanted.pull_session, int):
            values["pull_session"] = wanted.pull_session
            if not await reading.rows(KNOWN_SESSION, values):
                raise unknown_session(wanted.pull_session)
        if wanted.by_to_ship:
            found = await reading.rows(TO_SHIP_STATUSES, values)
            values["to_ship_statuses"] = [status for (status,) in found]
        [rows] = await reading.together([statement], values, last=True)
    return [order_row(row, caller) for row in rows]


async def customers_as_csv(heavy: HeavyWork, caller: Caller) -> AsyncIterator[bytes]:
    """Return the customers as a CSV, sorted by the sum of their orders. The sum and the profit are
    columns only for a caller who may see revenue.
    """
    return await streamed(heavy, caller, _of_customers(caller), part_of_customers)


async def part_of_customers(
    database: Database, caller: Caller, settings: Settings, now: datetime, after: int
) -> Part:
    """Return the part of the CSV with the page of customers after page number `after`."""
    number = after + 1
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        rows = (await customers(reading, caller, Paging(number, CUSTOMERS))).page
    lines = await lines_of(_of_customers(caller), rows)
    return Part(lines, number if len(rows) == CUSTOMERS else None)


def _of_customers(caller: Caller) -> CsvTable:
    return _WITH_REVENUE if caller.sees_revenue else _CUSTOMERS
