"""The page of a cycle count: the cards that should lie in a box, the form that takes what was
seen, and the buttons that settle or cancel.
"""

from __future__ import annotations

from litestar import Response, get, post
from litestar.response import Template

from cardsync import clock, errors, limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.cards.bulk_selection import read_id
from cardsync.cards.filters import read_page
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.selection import Form, number_of
from cardsync.dashboard.shell import PageRequest, field, read_form, see, show
from cardsync.database.session import Database
from cardsync.shelving import count_reads, counts
from cardsync.shelving.count_shown import count_in_full


@post("/counts", opt=BY_FORM | WRITES)
async def begin_count(request: PageRequest, caller: Caller, database: Database) -> Response[str]:
    form = await read_form(request)
    slot = number_of(form, "slot") if field(form, "slot") else None
    box = number_of(form, "box")
    async with database.tenant(caller.seller_id) as session:
        count_id = (await counts.begin(session, caller, box, slot, clock.now())).id
    return see(f"/counts/{count_id}")


@get("/counts/{count_id:int}", opt=BY_FORM)
async def count_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    count_id: int,
) -> Template:
    page = read_page(request.query_params.dict()).page
    per_page = limits.PLACES_PER_PAGE
    async with database.tenant(caller.seller_id) as session:
        row = await count_reads.read_one(session, caller, count_id)
        lines = await count_reads.lines_of(session, caller, count_id, page, per_page)
        count = count_in_full(row, lines, page, per_page)
    return show(
        request,
        caller,
        "count.html",
        count=count,
        total_pages=-(-count.lines // per_page),
    )


@post("/counts/{count_id:int}/seen", opt=BY_FORM | WRITES)
async def see_cards(
    request: PageRequest,
    caller: Caller,
    database: Database,
    count_id: int,
) -> Response[str]:
    """Note the lines of which a quantity was typed; the others stay unseen."""
    form = await read_form(request)
    sights = sights_of(form)
    async with database.tenant(caller.seller_id) as session:
        await counts.see(session, caller, count_id, sights, clock.now())
    noted = message("lines_noted", len(sights))
    return see(f"/counts/{count_id}", done=noted, page=field(form, "page"))


def sights_of(form: Form) -> list[counts.Sight]:
    """Read the fields seen-<card>-<slot>, and one card that was found. Pure. Raises InvalidPayload
    if a field is no number, or if none is filled in.
    """
    sights = []
    for name in form:
        kind, _, line = name.partition("-")
        card, _, slot = line.partition("-")
        if kind != "seen" or not field(form, name):
            continue
        sights.append(
            counts.Sight(
                _id(card),
                number_of({"slot": [slot]}, "slot"),
                _quantity(form, name),
            )
        )
    if field(form, "card_id"):
        sights.append(
            counts.Sight(
                _id(field(form, "card_id")),
                number_of(form, "slot"),
                _quantity(form, "quantity"),
            )
        )
    if not sights:
        raise errors.InvalidPayload("quantity: type how many you see of at least one card")
    return sights


def _id(text: str) -> int:
    card_id = read_id(text)
    if card_id is None:
        raise errors.InvalidPayload("card_id: the id of a card")
    return card_id


def _quantity(form: Form, name: str) -> int:
    text = field(form, name)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not 0 <= number <= limits.SHELVED_QUANTITY:
        raise errors.InvalidPayload(f"quantity: a number from 0 to {limits.SHELVED_QUANTITY:,}")
    return number


@post("/counts/{count_id:int}/end", opt=BY_FORM | WRITES)
async def end_count(
    request: PageRequest,
    caller: Caller,
    database: Database,
    count_id: int,
) -> Response[str]:
    """Settle or cancel a count, as the form's button says."""
    form = await read_form(request)
    action, now = field(form, "action"), clock.now()
    if action not in ("keep", "missing", "cancel"):
        raise errors.InvalidPayload("action: must be keep, missing or cancel")
    async with database.tenant(caller.seller_id) as session:
        if action == "cancel":
            await counts.cancel(session, caller, count_id, now)
        else:
            unseen: counts.Unseen = "missing" if action == "missing" else "keep"
            await counts.settle(session, caller, count_id, unseen, now)
    told = message("count_cancelled" if action == "cancel" else "count_settled")
    return see(f"/counts/{count_id}", done=told)


ROUTES = [begin_count, count_page, see_cards, end_count]
