"""The page of profit over some days, by period, game or buy rule; the fees beside those that the
schedule expects; and the lots, with the files that bring them and the payments report.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, cast

from litestar import Response, get, post
from litestar.response import Template

from cardsync import clock, errors, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import UPLOADS
from cardsync.buying.rules.buy_rule_sets import all_buy_rules
from cardsync.cards.bulk_selection import read_id
from cardsync.dashboard.form_handlers import read_file
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.sales import day_of
from cardsync.dashboard.shell import PageRequest, see, sentence, show
from cardsync.database.session import Database
from cardsync.lots import fee_audit, profit, read_lots, write_lots
from cardsync.lots.hand_lot import span_of, today_of
from cardsync.lots.lot_csv import RejectedRow
from cardsync.lots.lot_csv import read_lots as read_file_of_lots
from cardsync.lots.payment_csv import read_payments
from cardsync.lots.shown import ProfitBy
from cardsync.web.request import reading

# A face of the page, its name, and how many days it shows by default.
FACES: Final = {
    "month": ("Months", 365),
    "week": ("Weeks", 84),
    "day": ("Days", 30),
    "game": ("Games", 90),
    "rule": ("Buy rules", 365),
    "fees": ("Fees", 90),
    "lots": ("Lots", 30),
}
SERIES: Final = ("Received", "Profit")


@get("/profit", opt=BY_FORM)
async def profit_page(request: PageRequest, caller: Caller, database: Database) -> Template:
    given = {name: values[-1] for name, values in request.query_params.dict().items()}
    by = given.get("by") or "month"
    if by not in FACES:
        raise errors.InvalidPayload(f"by: must be one of {', '.join(FACES)}")
    return await _shown(request, caller, database, by, given)


async def _shown(
    request: PageRequest,
    caller: Caller,
    database: Database,
    by: str,
    given: dict[str, str],
    rejected: list[RejectedRow] | None = None,
    problem: str = "",
) -> Template:
    until = day_of(given, "to")
    since, last = span_of(caller, day_of(given, "from"), until, clock.now())
    first = since if given.get("from") else last - timedelta(days=FACES[by][1] - 1)
    values: dict[str, Any] = {"summary": None, "audit": None, "lots": None, "points": []}
    names: dict[int, str] = {}
    if by == "rule":
        async with database.tenant(caller.seller_id) as session:
            rules = await all_buy_rules(session, caller.seller_id)
            names = {rule.id: rule.name for rule in rules}
    if by == "lots":
        async with database.tenant(caller.seller_id) as session:
            after = read_id(given.get("after", ""))
            most = limits.LOTS_PER_PAGE
            values["lots"] = await read_lots.lots(session, caller, None, after, most)
    else:
        async with reading(request) as reads:
            if by == "fees":
                values["audit"] = await fee_audit.audit(reads, caller, first, last)
            else:
                kind = cast("ProfitBy", by)
                found = await profit.profit(reads, caller, kind, first, last)
                values["summary"] = found
                values["points"] = [
                    (row.start, {"Received": row.profit.received, "Profit": row.profit.profit})
                    for row in found.rows
                    if row.start is not None
                ]
    return show(
        request,
        caller,
        "profit.html",
        422 if problem else 200,
        by=by,
        first=first,
        last=last,
        faces=[(key, name) for key, (name, _) in FACES.items()],
        series=SERIES,
        names=names,
        rejected=rejected or [],
        problem=problem,
        **values,
    )


async def _body_of(request: PageRequest) -> bytes:
    """Raises CsrfFailed, InvalidPayload."""
    file = await read_file(request)
    body = b"" if file is None else await file.read()
    if not body:
        raise errors.InvalidPayload("choose a CSV file first")
    return body


@post("/profit/lots", opt=BY_FORM | UPLOADS, request_max_body_size=limits.LOT_FILE_CHARACTERS)
async def bring_lots(
    request: PageRequest,
    caller: Caller,
    database: Database,
) -> Template | Response[str]:
    now = clock.now()
    try:
        body = await _body_of(request)
        rows = read_file_of_lots(body, today_of(caller, now))
    except errors.InvalidPayload as e:
        return await _shown(request, caller, database, "lots", {}, problem=sentence(e))
    async with database.tenant(caller.seller_id) as session:
        made, known = await write_lots.add_by_file(session, caller, body, rows, now)
    if rows.rejected and not known:
        return await _shown(request, caller, database, "lots", {}, rows.rejected)
    return see("/profit?by=lots", done=message("lots_known" if known else "lots_made", made))


@post("/profit/payments", opt=BY_FORM | UPLOADS, request_max_body_size=limits.LOT_FILE_CHARACTERS)
async def bring_payments(
    request: PageRequest,
    caller: Caller,
    database: Database,
) -> Template | Response[str]:
    try:
        payments = read_payments(await _body_of(request))
    except errors.InvalidPayload as e:
        return await _shown(request, caller, database, "fees", {}, problem=sentence(e))
    async with database.tenant(caller.seller_id) as session:
        kept = await fee_audit.add_payments(session, caller, payments, clock.now())
    if kept.rejected:
        return await _shown(request, caller, database, "fees", {}, kept.rejected)
    return see("/profit?by=fees", done=message("payments_kept", kept.changed))


ROUTES: Final = [profit_page, bring_lots, bring_payments]
