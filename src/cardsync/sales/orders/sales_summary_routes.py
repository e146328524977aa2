"""HTTP routes of sales summaries: sums by day, week, month or game, and the cards that sold best or
did not sell.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated

from litestar import Response, Router, get
from litestar.params import QueryParameter

from cardsync.platform import errors
from cardsync.sales.orders import sales_summary
from cardsync.sales.orders.sales_summary_schemas import (
    SalesCards,
    SalesSummary,
    SummaryBy,
    as_csv,
    cards_as_csv,
)
from cardsync.sales.reports import read_report
from cardsync.web.as_csv import answer, body, headers
from cardsync.web.request import READ_BY_OWNERS, ApiRequest, problems

First = Annotated[
    date | None,
    QueryParameter(
        name="from", description="The first day, included; the default is a span of thirty days"
    ),
]
Last = Annotated[
    date | None, QueryParameter(name="to", description="The last day, included; today by default")
]
READING = problems(*READ_BY_OWNERS, errors.InvalidPayload)


@get("/summary", responses=READING)
async def read_sales_summary(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
    by: SummaryBy = "day",
) -> SalesSummary:
    """Orders, gross, refunds, fees and net by day, week or month, or items by game, in the
    account's time zone. Sums by game cover at most 366 days. Fees come from the marketplace's
    monthly reports; `gaps` lists the months without a report.
    """
    return await read_report(request, sales_summary.summary, first, last, by)


@get("/summary.csv", responses={200: answer("The periods, or the games"), **READING})
async def download_sales_summary(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
    by: SummaryBy = "day",
) -> Response[bytes]:
    """The periods or games of the summary as a CSV."""
    found = await read_report(request, sales_summary.summary, first, last, by)
    return body(as_csv(found), headers("sales"))


@get("/cards", responses=READING)
async def read_sales_cards(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
) -> SalesCards:
    """The cards that sold best, and the cards in stock with the highest value that did not sell."""
    return await read_report(request, sales_summary.best_and_worst, first, last)


@get("/cards.csv", responses={200: answer("The cards of both kinds"), **READING})
async def download_sales_cards(
    request: ApiRequest,
    first: First = None,
    last: Last = None,
) -> Response[bytes]:
    """The best and the unsold cards as a CSV; the column `sold` is `best` or `nothing`."""
    found = await read_report(request, sales_summary.best_and_worst, first, last)
    return body(cards_as_csv(found), headers("sold-cards"))


router = Router(
    path="/sales",
    route_handlers=[
        read_sales_summary,
        download_sales_summary,
        read_sales_cards,
        download_sales_cards,
    ],
    tags=["sales"],
)
