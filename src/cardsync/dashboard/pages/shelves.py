"""The pages of shelves: the boxes as a grid, one box slot by slot, and the forms that put cards on
the shelves, move them and take them off.
"""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.counts import whose
from cardsync.dashboard.pages.selected_cards import number_of
from cardsync.dashboard.shell import PageRequest, box_page, paging_of, see, show
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import Place, checked_box, read_place
from cardsync.stock.cards.card_filter import read_filter, read_page
from cardsync.stock.cards.queries import search_cards
from cardsync.stock.cards.schemas import card_body
from cardsync.stock.shelving import boxes, count_reads, places
from cardsync.stock.shelving.count_schemas import count_history
from cardsync.stock.shelving.rename_box import rename
from cardsync.web.forms import Form, sentence
from cardsync.web.request import reading

COUNTS_OF_BOX = 10


@get("/shelves")
async def shelves_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        found = await boxes.boxes(reads, caller)
    return show(request, caller, "shelves.html", boxes=found.boxes)


@get("/shelves/box")
async def find_box(request: PageRequest) -> Response[str]:
    """Send the browser to the box whose label was typed."""
    return see(box_page(checked_box(Form(request.query_params.dict())["box"])))


@get("/shelves/{box:str}")
async def shelf_page(
    request: PageRequest,
    caller: Caller,
    box: str,
) -> Template:
    wanted = checked_box(box)
    paging = paging_of(request, limits.PLACES_PER_PAGE)
    async with reading(request) as reads:
        found, history = await at_once(
            boxes.lying_in(reads, caller, wanted, paging),
            count_reads.history(reads, caller, None, wanted),
        )
        who = await whose(reads, caller, history.rows)
    return show(
        request,
        caller,
        "shelf.html",
        box=found,
        counted=count_history(history).counts[:COUNTS_OF_BOX],
        who=who,
    )


@get("/shelves/put")
async def put_page(request: PageRequest, caller: Caller, settings: Settings) -> Template:
    """Show the page for putting cards away: a member names a place, then one card after
    the other.
    """
    given = request.query_params.dict()
    wanted, page = read_filter(given), read_page(given)
    place = {name: (given.get(name) or [""])[-1] for name in ("box", "slot")}
    cards, problem = [], _problem_of(place["box"])
    if wanted.search and not problem:
        async with reading(request) as reads:
            answer = await search_cards(reads, caller, wanted, page, settings.read_seconds)
        cards = [card_body(row) for row in answer.found.cards]
        problem = answer.problems[0][0] if answer.problems else ""
    return show(
        request,
        caller,
        "put_away.html",
        place=place,
        search=wanted.search,
        cards=cards,
        search_problem=problem,
    )


def _problem_of(box: str) -> str:
    """Return why no card can be put into this box; empty if the label is valid or empty. Pure."""
    if box:
        try:
            checked_box(box)
        except errors.InvalidPayload as problem:
            return sentence(problem)
    return ""


@post_form("/shelves/put")
async def put_card(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    place, quantity = _place(form), number_of(form, "quantity")
    await places.put(session, caller, _card(form), place, quantity, clock.now())
    notice = message("copies_put", quantity, place)
    return see("/shelves/put", done=notice, box=place.box, slot=place.slot)


@post_form("/shelves/{box:str}/move")
async def move_card(
    caller: Caller,
    form: Form,
    session: AsyncSession,
    box: str,
) -> Response[str]:
    """Move a card in a box, or take it off the shelves, depending on the form's button."""
    origin = Place(checked_box(box), number_of(form, "from_slot"))
    quantity = number_of(form, "quantity") if form["quantity"] else None
    card_id, now = _card(form), clock.now()
    if form["action"] == "remove":
        await places.remove(session, caller, card_id, origin, quantity, now)
        return see(box_page(origin.box), done=message("card_taken_out", origin))
    target = _place(form)
    await places.move(session, caller, card_id, origin, target, quantity, now)
    return see(box_page(origin.box), done=message("card_moved", target))


@post_form("/shelves/{box:str}/rename")
async def rename_box(caller: Caller, form: Form, session: AsyncSession, box: str) -> Response[str]:
    target = checked_box(form["to"], "new name")
    renamed = await rename(session, caller, checked_box(box), target, clock.now())
    return see(box_page(renamed.box), done=message("box_renamed"))


@get("/shelves/{box:str}/{slot:str}")
async def find_place(box: str, slot: str) -> Response[str]:
    """Send the browser from the address of a place, like 3/12, to its box. A box's label has no
    slash.
    """
    return see(box_page(read_place(f"{box}/{slot}").box))


def _place(form: Form) -> Place:
    return Place(checked_box(form["box"]), number_of(form, "slot"))


def _card(form: Form) -> int:
    card_id = read_id(form["card_id"])
    if card_id is None:
        raise errors.InvalidPayload("card_id: choose a card")
    return card_id


ROUTES = [
    shelves_page,
    find_box,
    shelf_page,
    put_page,
    put_card,
    move_card,
    rename_box,
    find_place,
]
