"""The page of sales in a period: sums by month, week, day or game, or the cards that sold best and
those that did not sell.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple, cast

from litestar import get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.bars import bars_of
from cardsync.dashboard.shell import PageRequest, TemplateValues, reader_of, show
from cardsync.platform import clock, errors
from cardsync.sales.orders import sales_summary
from cardsync.sales.orders.sales_summary_schemas import SalesSummary, SummaryBy
from cardsync.sales.reports import span_of
from cardsync.web.request import reading

# The views of the page: each one's name, and the number of days that it shows by default.
FACES: Final = {
    "month": ("Months", 365),
    "week": ("Weeks", 84),
    "day": ("Days", 30),
    "game": ("Games", 90),
    "cards": ("Best and worst sellers", 90),
}
SERIES: Final = ("Gross", "Net", "Refunds")
# The views whose sums the page draws as bars.
IN_BARS: Final = ("month", "week", "day")


class Rest(NamedTuple):
    """The gross by game compared with the total. `known` is the sum of all games, `rest` is the
    total without it; `shared` is true if an order counts in several games.
    """

    known: Decimal
    rest: Decimal
    shared: bool


def rest_of(summary: SalesSummary) -> Rest | None:
    """Return the sum of the games compared with the total; None if no game's gross is
    known. Pure.
    """
    amounts = [Decimal(game.gross) for game in summary.games if game.gross is not None]
    if not amounts or summary.total is None:
        return None
    known = sum(amounts, Decimal())
    shared = sum(game.orders for game in summary.games) > summary.total.orders
    return Rest(known, Decimal(summary.total.gross) - known, shared)


def day_of(given: Mapping[str, str], name: str) -> date | None:
    """Read a date in the address; None if it is empty. Pure. Raises InvalidPayload."""
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as e:
        raise errors.InvalidPayload(f"{name}: must be a day like 2026-07-31") from e


@get("/sales")
async def sales_page(request: PageRequest, caller: Caller) -> Template:
    given = {name: values[-1] for name, values in request.query_params.dict().items()}
    by = given.get("by") or "month"
    if by not in FACES:
        raise errors.InvalidPayload(f"by: must be one of {', '.join(FACES)}")
    first, last = span_of(
        caller, day_of(given, "from"), day_of(given, "to"), clock.now(), FACES[by][1]
    )
    values: TemplateValues = {"summary": None, "cards": None, "gaps": []}
    async with reading(request) as reads:
        if by == "cards":
            values["cards"] = await sales_summary.best_and_worst(reads, caller, first, last)
        else:
            kind = cast("SummaryBy", by)
            found = await sales_summary.summary(reads, caller, first, last, kind)
            months = map(reader_of(request, caller).month, found.gaps)
            points = [
                (one.start, {"Gross": one.gross, "Net": one.likely_net, "Refunds": one.refunds})
                for one in found.periods
                if one.start is not None
            ]
            bars = bars_of(points, SERIES) if by in IN_BARS else None
            values |= {"summary": found, "gaps": list(months), "points": points, "bars": bars}
            values["rest"] = rest_of(found)
    return show(
        request,
        caller,
        "sales.html",
        by=by,
        first=first,
        last=last,
        faces=[(key, name) for key, (name, _) in FACES.items()],
        series=SERIES,
        asked={"from": given.get("from"), "to": given.get("to")},
        **values,
    )


ROUTES = [sales_page]
