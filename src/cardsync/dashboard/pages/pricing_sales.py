"""The pages of promotions: the list, and the workshop of one promotion, which begins as a draft.
The workshop shows the promotion's effect while an owner writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Final, NamedTuple

from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form, writer_of
from cardsync.dashboard.formats import zone_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.pages.promotion_templates import TEMPLATES, two_weeks
from cardsync.dashboard.shell import PageRequest, TemplateValues, see, show
from cardsync.platform import clock, errors
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.limits import RULE_NAME_CHARACTERS, SALE_CUT_MOST_BP
from cardsync.platform.value_types import JsonMapping
from cardsync.prices.engine.rules import Sale
from cardsync.prices.inputs.rule_json import to_json
from cardsync.prices.inputs.rule_rows import sale_of
from cardsync.prices.models import PricingSale
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.prices.preview.asked import drafted_promotion
from cardsync.prices.preview.promotion import PromotionAsked
from cardsync.prices.preview.schemas import PromotionEffect
from cardsync.prices.rules import sale_sets
from cardsync.prices.rules.rule_forms import own_fields, percent_field, read_percent
from cardsync.prices.rules.schemas import SaleShown
from cardsync.stock.search.meant_flags import meant
from cardsync.web.abandoned import while_there
from cardsync.web.forms import Form
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import opened, reading

FIELDS: Final = (
    "name", "query", "percent", "floor", "floor_cost", "unknown", "lower_all", "starts", "ends",
)  # fmt: skip
# This term of a search leaves out cards whose cost is unknown.
COSTED: Final = "has:cost"
FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 2200
BAD: Final = (errors.InvalidRule, errors.InvalidQuery, errors.InvalidPayload)


class Row(NamedTuple):
    """A promotion in the list. `phase` is draft, planned, on or over."""

    sale: SaleShown
    phase: str
    off: str


def row_of(sale: SaleShown, now: datetime) -> Row:
    """Return a promotion as a row of the list. Pure."""
    starts, ends = times_of(sale)
    phase = "planned" if now < starts else "on" if now < ends else "over"
    if not sale.enabled and phase != "over":
        phase = "draft"
    return Row(sale, phase, percent_field(-sale.adjust_bp))


def times_of(sale: SaleShown) -> tuple[datetime, datetime]:
    starts, ends = clock.read_moment(sale.starts_at), clock.read_moment(sale.ends_at)
    assert starts is not None
    assert ends is not None
    return starts, ends


def texts_of(sale: SaleShown, zone: tzinfo, now: datetime) -> dict[str, str]:
    """Return the form's fields for a saved promotion. If a draft's start is in the past, the field
    is empty, and the promotion starts when it is scheduled. Pure.
    """
    starts, ends = times_of(sale)
    past = starts <= now and not sale.enabled
    cost = sale.floor_cost_bp
    query, costed = without_costed(sale.query)
    return {
        "name": sale.name,
        "query": query,
        "percent": percent_field(-sale.adjust_bp),
        "floor": sale.floor or "",
        "floor_cost": "" if cost is None else percent_field(cost),
        "unknown": "out" if costed else "",
        "lower_all": "" if sale.keep_never_lower else "true",
        "starts": "" if past else local(starts, zone),
        "ends": local(ends, zone),
    }


def without_costed(query: str) -> tuple[str, bool]:
    """Return a promotion's search without the term `COSTED`, and whether it has that term. Pure."""
    if query == COSTED:
        return "", True
    inner = query.removeprefix("(").removesuffix(f") {COSTED}")
    return (inner, True) if query == f"({inner}) {COSTED}" else (query, False)


def new_texts(request: PageRequest, zone: tzinfo, now: datetime) -> dict[str, str]:
    """Return the form's fields for a new promotion: those of the template and those that the
    address names.
    """
    asked = request.query_params
    here = now.astimezone(zone)
    template = TEMPLATES.get(str(asked.get("template", "")))
    starts, ends = (template.times if template else two_weeks)(here)
    texts = dict.fromkeys(FIELDS, "") | {
        "floor_cost": "0",
        "percent": "10",
        "starts": local(starts, zone) if starts else "",
        "ends": local(ends, zone),
    }
    texts |= template.fields if template else {}
    given = {name: str(asked[name]) for name in ("name", "query", "percent") if name in asked}
    return texts | given


def local(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%dT%H:%M}"


def moment_of(text: str, name: str, zone: tzinfo) -> datetime:
    """Read a time. A text without a time zone is in the account's zone. Pure. Raises
    InvalidRule.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as e:
        raise errors.InvalidRule(f"{name}: must be a time like 2026-11-21T08:00") from e
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise errors.InvalidRule(f"{name}: must be between {FIRST_YEAR} and {LAST_YEAR}")
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def body_of(texts: Mapping[str, str], zone: tzinfo, now: datetime) -> dict[str, object]:
    """Return the form's fields as the body of a sale. Pure. Raises InvalidRule."""
    starts = moment_of(texts["starts"], "starts", zone) if texts["starts"] else now
    if not texts["ends"]:
        raise errors.InvalidRule("ends: choose when the promotion ends")
    cut = read_percent(texts["percent"], "percent")
    if not 0 <= cut <= SALE_CUT_MOST_BP:
        raise errors.InvalidRule(f"percent off: must be 0 to {percent_field(SALE_CUT_MOST_BP)}")
    cost = texts["floor_cost"]
    query = texts["query"]
    if texts["unknown"] == "out":
        query = f"({query}) {COSTED}" if query else COSTED
    return {
        "name": texts["name"],
        "query": query,
        "adjust_bp": -cut,
        "floor": texts["floor"] or None,
        "floor_cost_bp": read_percent(cost, "percent above cost") if cost else None,
        "keep_never_lower": texts["lower_all"] != "true",
        "starts_at": clock.rfc3339(starts),
        "ends_at": clock.rfc3339(moment_of(texts["ends"], "ends", zone)),
    }


def when_of(starts: str, zone: tzinfo, now: datetime) -> str:
    """Return the text of the button, which names the promotion's start. Pure."""
    try:
        moment = moment_of(starts, "starts", zone) if starts else now
    except errors.InvalidRule:
        return "Schedule"
    if moment <= now:
        return "Start now"
    here, day = now.astimezone(zone), moment.astimezone(zone)
    days = (day.date() - here.date()).days
    if days == 0:
        return "Schedule for today"
    if days < 7:
        return f"Schedule for {day:%A}"
    return f"Schedule for {day:%B} {day.day}"


class Wait(NamedTuple):
    """A line from now to the promotion's end. `start` and `end` are positions in percent of its
    width. A promotion that starts immediately has no separate start.
    """

    starts_at: datetime | None
    ends_at: datetime
    start: int
    end: int


def wait_of(texts: Mapping[str, str], zone: tzinfo, now: datetime) -> Wait | None:
    """Return the line from now to the promotion's end; None if a time is invalid or past. Pure."""
    try:
        starts = moment_of(texts["starts"], "starts", zone) if texts["starts"] else now
        ends = moment_of(texts["ends"], "ends", zone)
    except errors.InvalidRule:
        return None
    if ends <= max(starts, now):
        return None
    if starts <= now:
        return Wait(None, ends, 2, 98)
    part = round(96 * ((starts - now) / (ends - now)))
    # The words under now, start and end must not overlap.
    return Wait(starts, ends, min(max(2 + part, 34), 64), 98)


@get("/pricing/sales")
async def sales_page(request: PageRequest, caller: Caller) -> Template:
    now = clock.now()
    async with reading(request) as reads:
        stored = await sale_sets.read_sales(reads, caller)
        sales = await sale_sets.shown_sales(reads, caller, stored)
    return show_part(
        request,
        caller,
        "pricing_sales.html",
        rows=[row_of(sale, now) for sale in sales],
        templates=TEMPLATES.items(),
    )


async def _stored(request: PageRequest, caller: Caller) -> SaleShown | None:
    """Return the stored promotion that the address names; None for a new one. Raises NotFound,
    OwnerRequired.
    """
    caller.must_be_owner()
    sale_id = request.path_params.get("sale_id")
    if sale_id is None:
        return None
    async with opened(request, long=True) as session:
        row = await sale_sets.read_sale(session, caller, sale_id)
        [shown] = await sale_sets.shown_sales(session, caller, [row])
    return shown


def _shown(
    request: PageRequest,
    caller: Caller,
    stored: SaleShown | None,
    texts: Mapping[str, str],
    effect: PromotionEffect | None,
    problem: errors.Problem | None = None,
) -> Template:
    now = clock.now()
    row = row_of(stored, now) if stored else None
    return show_part(
        request,
        caller,
        "promotion.html",
        row=row,
        sale=stored,
        sale_id=stored.id if stored else None,
        templates=TEMPLATES.items(),
        time_zone=caller.account.time_zone,
        problem=problem,
        **_beside(caller, stored, texts, effect),
    )


def _beside(
    caller: Caller,
    stored: SaleShown | None,
    texts: Mapping[str, str],
    effect: PromotionEffect | None,
) -> TemplateValues:
    """Return the values for the part of the page that shows the effect."""
    zone, now = zone_of(caller.account.time_zone), clock.now()
    live = stored is not None and stored.enabled
    return {
        "effect": effect,
        "meant": meant(texts["query"]),
        "texts": texts,
        "wait": wait_of(texts, zone, now),
        "when": "Save changes" if live else when_of(texts["starts"], zone, now),
    }


@get(["/pricing/sales/new", "/pricing/sales/{sale_id:int}"])
async def promotion_page(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Template:
    """Show the promotion and its effect, also without a script."""
    stored = await _stored(request, caller)
    zone, now = zone_of(caller.account.time_zone), clock.now()
    texts = texts_of(stored, zone, now) if stored else new_texts(request, zone, now)
    effect, problem = None, None
    try:
        effect = await _previewed(request, caller, heavy, body_of(texts, zone, now), stored)
    except BAD as e:
        problem = e
    return _shown(request, caller, stored, texts, effect, problem)


@post_form(["/pricing/sales/new", "/pricing/sales/{sale_id:int}"])
async def save_promotion(
    request: PageRequest,
    caller: Caller,
    form: Form,
    heavy: HeavyWork,
) -> Template | Response[str]:
    """Save the promotion as a draft, schedule it, or show its effect without saving."""
    stored = await _stored(request, caller)
    texts, now = form.some(*FIELDS), clock.now()
    zone = zone_of(caller.account.time_zone)
    effect = None
    try:
        body = body_of(texts, zone, now)
        goes_live = form["action"] == "schedule" or (stored is not None and stored.enabled)
        if form["action"] == "preview":
            effect = await _previewed(request, caller, heavy, body, stored)
            return _shown(request, caller, stored, texts, effect)
        if goes_live:
            _need_future(body, now)
        async with opened(request, long=True) as session:
            writer = writer_of(request, session)
            saved = await _saved(writer, stored, body | {"enabled": goes_live})
    except BAD as e:
        return _shown(request, caller, stored, texts, effect, e)
    done = "sale_draft"
    if goes_live:
        done = "sale_started" if saved.starts_at <= now else "sale_scheduled"
    return see(f"/pricing/sales/{saved.id}", done=message(done))


async def _saved(
    writer: Writer, stored: SaleShown | None, body: Mapping[str, object]
) -> PricingSale:
    if stored is None:
        return await writes.create_sale(writer, body)
    return await writes.change_sale(writer, stored.id, body)


def _need_future(body: JsonMapping, now: datetime) -> None:
    ends = clock.read_moment(body["ends_at"])
    if ends is None or ends <= now:
        raise errors.InvalidRule("ends: is in the past")


async def _previewed(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
    body: Mapping[str, object],
    stored: SaleShown | None,
) -> PromotionEffect:
    """Return the promotion's effect. The work stops if the caller leaves, because each typed
    character causes a new request.
    """
    sale = {name: value for name, value in body.items() if name != "name" or value}
    asked = PromotionAsked(sale, stored.id if stored else None)
    work = heavy.read(drafted_promotion, caller, Work.LONG, clock.now(), asked)
    return await while_there(request.receive, work)


@post_form(["/pricing/sales/effect", "/pricing/sales/{sale_id:int}/effect"])
async def effect_part(
    request: PageRequest,
    caller: Caller,
    form: Form,
    heavy: HeavyWork,
) -> Template:
    """Show the promotion's effect as a part of the page."""
    stored = await _stored(request, caller)
    texts = form.some(*FIELDS)
    zone, now = zone_of(caller.account.time_zone), clock.now()
    problem = None
    effect = None
    try:
        effect = await _previewed(request, caller, heavy, body_of(texts, zone, now), stored)
    except BAD as e:
        problem = e
    return show(
        request,
        caller,
        "promotion_effect.html",
        is_part=True,
        problem=problem,
        **_beside(caller, stored, texts, effect),
    )


def copy_of(sale: Sale, now: datetime) -> dict[str, object]:
    """Return the body of a promotion's copy, which is a draft. The copy of a started promotion
    begins now. Pure.
    """
    body = own_fields(to_json(sale))
    if sale.starts_at <= now:
        ends = now + (sale.ends_at - sale.starts_at)
        body |= {"starts_at": clock.rfc3339(now), "ends_at": clock.rfc3339(ends)}
    return body | {"name": f"Copy of {sale.name}"[:RULE_NAME_CHARACTERS], "enabled": False}


@post_form("/pricing/sales/{sale_id:int}/{what:str}")
async def end_sale(writer: Writer, sale_id: int, what: str) -> Response[str]:
    """Make the promotion a draft, which ends it; copy it as a draft; or delete it."""
    if what == "copy":
        sale = await sale_sets.read_sale(writer.session, writer.caller, sale_id)
        copied = await writes.create_sale(writer, copy_of(sale_of(sale), writer.now))
        return see(f"/pricing/sales/{copied.id}", done=message("sale_copied"))
    if what == "delete":
        await writes.remove_sale(writer, sale_id)
        return see("/pricing/sales", done=message("sale_deleted"))
    if what != "off":
        raise errors.NotFound("this page does not exist")
    await writes.change_sale(writer, sale_id, {"enabled": False})
    return see(f"/pricing/sales/{sale_id}", done=message("sale_off"))


ROUTES = [sales_page, promotion_page, save_promotion, effect_part, end_sale]
