"""The page of profit. It shows a period's profit from the copies with a known cost, and the sales
without a known cost; the profit by day, week, month, game or buy rule; the fees, compared with the
expected fees; and the lots, with the forms for their files and for the payments report.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NamedTuple, cast

from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.buying.rules.buy_rule_sets import all_buy_rules
from cardsync.dashboard.bars import bars_of, waterfall_of
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.sales import day_of
from cardsync.dashboard.shell import PageRequest, TemplateValues, reader_of, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.sales.lots import fee_audit, profit, read_lots, write_lots
from cardsync.sales.lots.lot_csv import RejectedLotRow
from cardsync.sales.lots.lot_csv import read_lots as read_file_of_lots
from cardsync.sales.lots.payment_csv import read_payments
from cardsync.sales.lots.schemas import ProfitBy
from cardsync.sales.orders import sales_summary
from cardsync.sales.reports import span_of
from cardsync.shop.today.conditions import same_days_before
from cardsync.stock.cards.named_cards import named_cards
from cardsync.web.forms import Form, sentence
from cardsync.web.request import opened, reading

# The views of the page: each one's name, and the number of days that it shows by default.
FACES: Final = {
    "month": ("By month", 365),
    "week": ("By week", 84),
    "day": ("By day", 30),
    "game": ("By game", 90),
    "pricing_rule": ("By rule", 90),
    "rule": ("By buy rule", 365),
    "fees": ("Fees: estimate and report", 90),
    "lots": ("Purchases and cost", 30),
}
SERIES: Final = ("Received", "Earned")
PERIODS: Final = {
    "this": "This month",
    "last": "Last month",
    "ninety": "90 days",
    "year": "This year",
    "own": "Choose dates",
}
MONTHS_SHOWN: Final = 3
PARTS: Final = (
    ("Fees", "counted_fees"),
    ("Postage", "counted_postage"),
    ("Cost", "cost"),
)


class Span(NamedTuple):
    """The days of a period, and of the period with which it is compared."""

    first: date
    last: date
    first_before: date
    last_before: date


def span_shown(period: str, today: date, first: date | None, last: date | None) -> Span:
    """Return the days of a period. A period with chosen dates is compared with the same number of
    days before it. Pure.
    """
    if period == "this":
        return Span(today.replace(day=1), today, *same_days_before(today))
    if period == "last":
        end = today.replace(day=1) - timedelta(days=1)
        before = end.replace(day=1) - timedelta(days=1)
        return Span(end.replace(day=1), end, before.replace(day=1), before)
    if period == "year":
        end = today.replace(year=today.year - 1, day=min(today.day, 28))
        return Span(today.replace(month=1, day=1), today, end.replace(month=1, day=1), end)
    until = last or today
    since = first or until - timedelta(days=89)
    days = until - since + timedelta(days=1)
    return Span(since, until, since - days, until - days)


@get("/profit")
async def profit_page(request: PageRequest, caller: Caller) -> Template:
    given = {name: values[-1] for name, values in request.query_params.dict().items()}
    by = given.get("by") or ""
    if not by:
        return await _earned(request, caller, given)
    if by not in FACES:
        raise errors.InvalidPayload(f"by: must be one of {', '.join(FACES)}")
    return await _shown(request, caller, by, given)


async def _earned(request: PageRequest, caller: Caller, given: dict[str, str]) -> Template:
    """Show the profit of one period."""
    period = given.get("period") or ("own" if given.get("from") or given.get("to") else "this")
    if period not in PERIODS:
        raise errors.InvalidPayload(f"period: must be one of {', '.join(PERIODS)}")
    today = caller.today(clock.now())
    span = span_shown(period, today, day_of(given, "from"), day_of(given, "to"))
    first = (today.replace(day=1) - timedelta(days=28 * (MONTHS_SHOWN - 1))).replace(day=1)
    async with reading(request) as reads:
        account = await profit.settings(reads, caller)
        (games, rules, before), (months, sold, missing) = await at_once(
            at_once(
                profit.profit(reads, caller, span.first, span.last, "game"),
                profit.profit(reads, caller, span.first, span.last, "pricing_rule"),
                profit.profit(reads, caller, span.first_before, span.last_before, "game"),
            ),
            at_once(
                profit.profit(reads, caller, first, today, "month"),
                sales_summary.summary(reads, caller, span.first, span.last, "month"),
                profit.without_cost(reads, caller, span.first, span.last),
            ),
        )
        cards = await named_cards(reads, caller, [one.marketplace_id for one in missing])
    total = games.total
    return show(
        request,
        caller,
        "profit_earned.html",
        period=period,
        periods=[*PERIODS.items()],
        faces=[(key, name) for key, (name, _) in FACES.items()],
        span=span,
        total=total,
        before=before.total,
        games=games.rows,
        rules=rules.rows,
        months=[*reversed(months.rows)],
        sold=sold.total,
        gaps=[*map(reader_of(request, caller).month, sold.gaps)],
        missing=missing,
        cards=cards,
        account=account,
        steps=waterfall_of(
            Decimal(total.counted_received),
            [(label, Decimal(getattr(total, name))) for label, name in PARTS],
        )
        if total and total.profit is not None
        else [],
    )


async def _shown(
    request: PageRequest,
    caller: Caller,
    by: str,
    given: dict[str, str],
    rejected: list[RejectedLotRow] | None = None,
    problem: str = "",
) -> Template:
    first, last = span_of(
        caller, day_of(given, "from"), day_of(given, "to"), clock.now(), FACES[by][1]
    )
    values: TemplateValues = {"summary": None, "audit": None, "lots": None, "points": []}
    values |= {"cards": {}, "bars": None}
    names: dict[int, str] = {}
    if by == "rule":
        async with opened(request) as session:
            rules = await all_buy_rules(session, caller.seller_id)
            names = {rule.id: rule.name for rule in rules}
    if by == "lots":
        async with opened(request) as session:
            after = read_id(given.get("after", ""))
            most = limits.LOTS_PER_PAGE
            found_lots = await read_lots.lots(session, caller, None, after, most)
        async with reading(request) as reads:
            ids = [lot.marketplace_id for lot in found_lots.lots]
            values |= {"lots": found_lots, "cards": await named_cards(reads, caller, ids)}
    else:
        async with reading(request) as reads:
            if by == "fees":
                values["audit"] = await fee_audit.audit(reads, caller, first, last)
            else:
                kind = cast("ProfitBy", by)
                found = await profit.profit(reads, caller, first, last, kind)
                values["summary"] = found
                values["points"] = [
                    (
                        row.start,
                        {"Received": row.profit.counted_received, "Earned": row.profit.profit},
                    )
                    for row in found.rows
                    if row.start is not None
                ]
                values["bars"] = bars_of(values["points"], SERIES)
    return show(
        request,
        caller,
        "profit.html",
        422 if problem else 200,
        by=by,
        name=FACES[by][0],
        first=first,
        last=last,
        faces=[(key, name) for key, (name, _) in FACES.items()],
        series=SERIES,
        names=names,
        rejected=rejected or [],
        problem=problem,
        **values,
    )


async def _body_of(form: Form) -> bytes:
    """Return the uploaded file. Raises InvalidPayload."""
    body = b"" if form.file is None else await form.file.read()
    if not body:
        raise errors.InvalidPayload("choose a CSV file first")
    return body


@post_form("/profit/lots", UPLOADS, request_max_body_size=limits.LOT_FILE_CHARACTERS)
async def bring_lots(request: PageRequest, caller: Caller, form: Form) -> Template | Response[str]:
    now = clock.now()
    try:
        body = await _body_of(form)
        rows = read_file_of_lots(body, caller.today(now))
    except errors.InvalidPayload as e:
        return await _shown(request, caller, "lots", {}, problem=sentence(e))
    async with opened(request) as session:
        made, known = await write_lots.add_by_file(session, caller, body, rows, now)
    if rows.rejected and not known:
        return await _shown(request, caller, "lots", {}, rows.rejected)
    return see("/profit?by=lots", done=message("lots_known" if known else "lots_made", made))


@post_form("/profit/payments", UPLOADS, request_max_body_size=limits.LOT_FILE_CHARACTERS)
async def bring_payments(
    request: PageRequest, caller: Caller, form: Form
) -> Template | Response[str]:
    try:
        payments = read_payments(await _body_of(form))
    except errors.InvalidPayload as e:
        return await _shown(request, caller, "fees", {}, problem=sentence(e))
    async with opened(request) as session:
        kept = await fee_audit.add_payments(session, caller, payments, clock.now())
    if kept.rejected:
        return await _shown(request, caller, "fees", {}, kept.rejected)
    return see("/profit?by=fees", done=message("payments_kept", kept.changed))


ROUTES: Final = [profit_page, bring_lots, bring_payments]
