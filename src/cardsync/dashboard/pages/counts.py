"""The page of counts, and the page of one cycle count: the cards that should be in a box, a form
for the counted copies, and the buttons that settle or cancel the count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.offered_cards import offered_cards
from cardsync.dashboard.pages.selected_cards import number_of
from cardsync.dashboard.shell import PageRequest, paging_of, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source
from cardsync.platform.kit.typed_numbers import read_id, whole
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import checked_box
from cardsync.shop.activity.entry_words import actor_words
from cardsync.shop.activity.feed import names_in
from cardsync.stock.shelving import count_reads, cycle_counts
from cardsync.stock.shelving.count_schemas import CountInFull, count_history
from cardsync.stock.shelving.models import ShelfCount
from cardsync.web.forms import Form
from cardsync.web.request import reading

SUGGESTED = 10


@get("/counts")
async def counts_page(request: PageRequest, caller: Caller) -> Template:
    """Show the boxes that most need a count, and the newest counts."""
    async with reading(request) as reads:
        suggested, history = await at_once(
            count_reads.suggested(reads, caller, clock.now(), SUGGESTED),
            count_reads.history(reads, caller, None, None),
        )
        who = await whose(reads, caller, history.rows)
    counted = count_history(history).counts
    return show(
        request,
        caller,
        "counts.html",
        suggested=suggested.boxes,
        counted=counted,
        open={one.box: one.id for one in counted if one.state == "open"},
        who=who,
    )


async def whose(
    source: Source, caller: Caller, counts: Iterable[ShelfCount | CountInFull]
) -> Callable[[str], str]:
    """Return a function that returns the name of a member who began one of the counts."""
    names = await names_in(source, caller, [one.begun_by for one in counts])
    return partial(actor_words, names=names)


@post_form("/counts")
async def begin_count(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    slot = number_of(form, "slot") if form["slot"] else None
    box = checked_box(form["box"])
    count_id = (await cycle_counts.begin(session, caller, box, slot, clock.now())).id
    return see(f"/counts/{count_id}")


@get("/counts/{count_id:int}")
async def count_page(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
    count_id: int,
) -> Template:
    find, found = await offered_cards(request, caller, settings)
    paging = paging_of(request, limits.PLACES_PER_PAGE)
    async with reading(request) as reads:
        count = await count_reads.in_full(reads, caller, count_id, paging)
        who = await whose(reads, caller, [count])
    return show(
        request,
        caller,
        "count.html",
        count=count,
        who=who,
        find=find,
        found=found,
        total_pages=paging.of(count.lines).total_pages,
    )


@post_form("/counts/{count_id:int}/seen")
async def see_cards(
    caller: Caller, form: Form, session: AsyncSession, count_id: int
) -> Response[str]:
    """Save the typed quantities. Lines without a quantity stay unseen."""
    sights = sights_of(form)
    await cycle_counts.see(session, caller, count_id, sights, clock.now())
    noted = message("lines_noted", len(sights))
    return see(f"/counts/{count_id}", done=noted, page=form["page"])


def sights_of(form: Form) -> list[cycle_counts.Sight]:
    """Read the fields seen-<card>-<slot>, and the card that was searched for. Pure. Raises
    InvalidPayload if a field is not a number, or if no field is filled in.
    """
    sights = []
    for name in form:
        kind, _, line = name.partition("-")
        card, _, slot = line.partition("-")
        if kind != "seen" or not form[name]:
            continue
        sights.append(
            cycle_counts.Sight(
                _id(card),
                number_of(Form({"slot": [slot]}), "slot"),
                _quantity(form, name),
            )
        )
    if form["card_id"]:
        sights.append(
            cycle_counts.Sight(
                _id(form["card_id"]),
                number_of(form, "slot"),
                _quantity(form, "quantity"),
            )
        )
    if not sights:
        raise errors.InvalidPayload("quantity: enter how many copies you see for at least one card")
    return sights


def _id(text: str) -> int:
    card_id = read_id(text)
    if card_id is None:
        raise errors.InvalidPayload("card_id: the id of a card")
    return card_id


def _quantity(form: Form, name: str) -> int:
    number = whole(form[name], limits.SHELVED_QUANTITY)
    if number is None:
        raise errors.InvalidPayload(f"quantity: a number from 0 to {limits.SHELVED_QUANTITY:,}")
    return number


@post_form("/counts/{count_id:int}/end")
async def end_count(
    caller: Caller, form: Form, session: AsyncSession, count_id: int
) -> Response[str]:
    """Settle or cancel a count, depending on the form's button."""
    action, now = form["action"], clock.now()
    if action not in ("keep", "missing", "cancel"):
        raise errors.InvalidPayload("action: must be keep, missing or cancel")
    if action == "cancel":
        await cycle_counts.cancel(session, caller, count_id, now)
    else:
        unseen: cycle_counts.Unseen = "missing" if action == "missing" else "keep"
        await cycle_counts.settle(session, caller, count_id, unseen, now)
    notice = message("count_cancelled" if action == "cancel" else "count_settled")
    return see(f"/counts/{count_id}", done=notice)


ROUTES = [counts_page, begin_count, count_page, see_cards, end_count]
