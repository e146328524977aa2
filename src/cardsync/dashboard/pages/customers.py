"""The page of customers, sorted by the sum of their orders, with the share of customers who bought
more than once.
"""

from __future__ import annotations

from decimal import Decimal

from litestar import get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.shell import PageRequest, show
from cardsync.sales.orders.customer_list import customers
from cardsync.sales.orders.order_filter import read_page
from cardsync.web.request import reading


@get("/customers")
async def customers_page(request: PageRequest, caller: Caller) -> Template:
    paging = read_page(request.query_params.dict())
    async with reading(request) as reads:
        found = await customers(reads, caller, paging)
    return show(
        request,
        caller,
        "customers.html",
        customers=found.page,
        returning=found.returning,
        share=Decimal(100 * found.returning) / found.total if found.total else None,
        **paging.of(found.total)._asdict(),
    )
