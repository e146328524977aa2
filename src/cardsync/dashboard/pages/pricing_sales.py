"""The page of sales: each with its percentage off, its time, and whether it is on; templates and
durations fill the form of a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple

from litestar import Response, get
from litestar.response import Template

from cardsync import clock, errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import Form, post_form, writer_of
from cardsync.dashboard.formats import zone_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest, see, sentence
from cardsync.database.session import Database
from cardsync.limits import SALE_CUT_MOST_BP
from cardsync.plans import writes
from cardsync.plans.writer import Writer
from cardsync.pricing.rules import sale_sets
from cardsync.pricing.rules.rule_forms import percent_field, read_percent
from cardsync.pricing.rules.rule_warnings import warnings_of
from cardsync.pricing.rules.shown import SaleShown, sale_bodies
from cardsync.settings import Settings

DURATIONS: Final = (
    ("24", "1 day"),
    ("48", "2 days"),
    ("72", "3 days"),
    ("168", "1 week"),
    ("336", "2 weeks"),
    ("720", "30 days"),
)
TEMPLATES: Final = {
    "flash": ("Flash sale", {"name": "Flash sale", "percent": "10", "hours": "24"}),
    "weekend": ("Weekend", {"name": "Weekend sale", "percent": "15", "hours": "48"}),
    "week": ("A week", {"name": "Weeklong sale", "percent": "5", "hours": "168"}),
    "clear": ("Clearance", {"name": "Clearance", "percent": "25", "hours": "336"}),
}
FIELDS: Final = ("name", "query", "percent", "floor", "starts", "ends", "hours")
FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 2200
SWITCHES: Final = {"on": True, "off": False}


class Row(NamedTuple):
    """`phase` is on, off, planned or over; `texts` are the fields of its form."""

    sale: SaleShown
    phase: str
    off: str
    texts: dict[str, str]


def row_of(sale: SaleShown, zone: tzinfo, now: datetime) -> Row:
    """Return a sale as the page shows it. Pure."""
    starts, ends = clock.read_moment(sale.starts_at), clock.read_moment(sale.ends_at)
    assert starts is not None
    assert ends is not None
    phase = "planned" if now < starts else "on" if now < ends else "over"
    texts = {
        "name": sale.name,
        "query": sale.query,
        "percent": percent_field(-sale.adjust_bp),
        "floor": sale.floor or "",
        "starts": local(starts, zone),
        "ends": local(ends, zone),
        "hours": "",
    }
    return Row(
        sale,
        phase if sale.enabled else "off",
        texts["percent"],
        texts,
    )


def local(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%dT%H:%M}"


def moment_of(text: str, name: str, zone: tzinfo) -> datetime:
    """Read a time, of the account's zone if it names none. Pure. Raises InvalidRule."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as e:
        raise errors.InvalidRule(f"{name}: must be a time like 2026-11-21T08:00") from e
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise errors.InvalidRule(f"{name}: must be between {FIRST_YEAR} and {LAST_YEAR}")
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def body_of(
    texts: Mapping[str, str],
    zone: tzinfo,
    now: datetime,
) -> dict[str, Any]:
    """Read a form into the body of a sale. Pure. Raises InvalidRule."""
    starts = moment_of(texts["starts"], "starts", zone) if texts["starts"] else now
    if texts["ends"]:
        ends = moment_of(texts["ends"], "ends", zone)
    elif texts["hours"] in dict(DURATIONS):
        ends = starts + timedelta(hours=int(texts["hours"]))
    else:
        raise errors.InvalidRule("ends: choose a duration or an end time")
    cut = read_percent(texts["percent"], "percent")
    if not 0 <= cut <= SALE_CUT_MOST_BP:
        raise errors.InvalidRule(
            f"percent: must be between 0 and {percent_field(SALE_CUT_MOST_BP)}"
        )
    return {
        "name": texts["name"],
        "query": texts["query"],
        "adjust_bp": -cut,
        "floor": texts["floor"] or None,
        "starts_at": clock.rfc3339(starts),
        "ends_at": clock.rfc3339(ends),
    }


@get("/pricing/sales", opt=BY_FORM)
async def sales_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Template:
    chosen = TEMPLATES.get(str(request.query_params.get("template", "")))
    return await _shown(
        request,
        caller,
        database,
        settings,
        chosen[1] if chosen else {},
    )


async def _shown(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
    texts: Mapping[str, str],
    problem: errors.Problem | None = None,
    sale_id: int | None = None,
) -> Template:
    """Show the sales, with what was typed in the form of a new one, or of the one that is named."""
    zone, now = zone_of(caller.account.time_zone), clock.now()
    async with database.bounded(caller.seller_id, settings.read_seconds, snapshot=True) as session:
        stored = await sale_sets.read_sales(session, caller)
        sales = sale_bodies(stored, await warnings_of(session, stored))
    rows = [row_of(sale, zone, now) for sale in sales]
    empty = dict.fromkeys(FIELDS, "") | {"hours": "48"}
    return show_part(
        request,
        caller,
        "pricing_sales.html",
        problem.status if problem else 200,
        rows=[row._replace(texts=dict(texts)) if row.sale.id == sale_id else row for row in rows],
        texts=empty | dict(texts) if sale_id is None else empty,
        open_id=sale_id,
        templates=[(key, name) for key, (name, _) in TEMPLATES.items()],
        durations=DURATIONS,
        problem=sentence(problem) if problem else "",
    )


@post_form(["/pricing/sales", "/pricing/sales/{sale_id:int}"])
async def save_sale(
    request: PageRequest,
    caller: Caller,
    form: Form,
    database: Database,
    settings: Settings,
    sale_id: int | None = None,
) -> Template | Response[str]:
    """Make or change a sale."""
    texts = form.some(*FIELDS)
    now = clock.now()
    try:
        body = body_of(texts, zone_of(caller.account.time_zone), now)
        async with database.bounded(caller.seller_id, settings.read_seconds) as session:
            writer = writer_of(session, caller, settings, form)
            if sale_id is None:
                await writes.create_sale(writer, body)
            else:
                await writes.change_sale(writer, sale_id, body)
    except (errors.InvalidRule, errors.InvalidQuery) as e:
        return await _shown(request, caller, database, settings, texts, e, sale_id)
    return see("/pricing/sales", done=message("sale_saved"))


@post_form("/pricing/sales/{sale_id:int}/{what:str}")
async def switch_sale(writer: Writer, sale_id: int, what: str) -> Response[str]:
    """Switch a sale on or off, or delete it."""
    if what != "delete" and what not in SWITCHES:
        raise errors.NotFound("this page does not exist")
    if what == "delete":
        await writes.remove_sale(writer, sale_id)
        return see("/pricing/sales", done=message("sale_deleted"))
    await writes.change_sale(writer, sale_id, {"enabled": SWITCHES[what]})
    return see("/pricing/sales", done=message(f"sale_{what}"))


ROUTES = [sales_page, save_sale, switch_sale]
