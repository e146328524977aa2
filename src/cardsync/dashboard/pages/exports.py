"""Downloads of whole tables as CSV, for the pages that show these tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from litestar import Response, get
from litestar.response import Stream

from cardsync.access.caller import Caller
from cardsync.dashboard.formats import zone_of
from cardsync.dashboard.pages.activity_feed import wanted_of
from cardsync.dashboard.shell import HEADERS, PageRequest
from cardsync.prices.runs.as_csv import runs_as_csv
from cardsync.sales.orders.as_csv import customers_as_csv, orders_as_csv
from cardsync.sales.orders.order_filter import read_filter
from cardsync.shop.activity.as_csv import activity_as_csv
from cardsync.stock.lists.as_csv import lists_as_csv
from cardsync.web.as_csv import headers
from cardsync.web.heavy_work import HeavyWork


def _file(parts: AsyncIterator[bytes], name: str) -> Response[bytes]:
    answer = Stream(parts, media_type="text/csv", headers=HEADERS | headers(name))
    return cast("Response[bytes]", answer)


@get("/orders/export.csv")
async def export_orders(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Response[bytes]:
    wanted = read_filter(request.query_params.dict())
    return _file(await orders_as_csv(heavy, caller, wanted), "orders")


@get("/customers/export.csv")
async def export_customers(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    return _file(await customers_as_csv(heavy, caller), "customers")


@get("/lists/export.csv")
async def export_lists(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    return _file(await lists_as_csv(heavy, caller), "lists")


@get("/activity/export.csv")
async def export_activity(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Response[bytes]:
    given = dict(request.query_params.multi_items())
    wanted = wanted_of(given, zone_of(caller.account.time_zone))
    return _file(await activity_as_csv(heavy, caller, wanted), "activity")


@get("/pricing/runs/export.csv")
async def export_runs(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    return _file(await runs_as_csv(heavy, caller), "price_runs")


ROUTES = [export_orders, export_customers, export_lists, export_activity, export_runs]
