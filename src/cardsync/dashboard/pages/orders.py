"""The page of orders, by the address's filters and order: tabs with the number of orders of each
status, and a table.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from litestar import get
from litestar.response import Template

from cardsync import limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.shell import PageRequest, games_of, show, url
from cardsync.orders.order_filter import OrderFilter, read_filter
from cardsync.orders.pullable import to_ship
from cardsync.orders.queries import find_orders
from cardsync.orders.shown import order_body
from cardsync.web.request import reading

# The number of items that an order's row names.
_NAMED = 2


@get("/orders", opt=BY_FORM)
async def orders_page(request: PageRequest, caller: Caller) -> Template:
    wanted = replace(read_filter(request.query_params.dict()), items_per_order=_NAMED)
    async with reading(request) as reads:
        found = await find_orders(reads, caller, wanted)
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
        to_ship={
            order.id
            for order in found.orders
            if to_ship(order.status, order.refund_amt) and order.shipped_marked_at is None
        },
        filtered=bool(_filters(wanted) or wanted.statuses),
    )


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
