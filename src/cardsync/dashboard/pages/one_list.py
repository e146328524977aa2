"""The page of one list with its cards, searched by the list's own search; and the page that shows
which cards a search would add to the list.
"""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.selected_cards import added_message, chosen, selected
from cardsync.dashboard.shell import PageRequest, games_of, see, show
from cardsync.platform import limits
from cardsync.platform.settings import Settings
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.stock.cards.card_filter import CardFilter, read_filter, read_page
from cardsync.stock.cards.queries import search_cards
from cardsync.stock.cards.schemas import card_body
from cardsync.stock.lists.seller_lists import read_list
from cardsync.web.forms import Form
from cardsync.web.request import reading


@get("/lists/{list_id:int}")
async def list_page(
    request: PageRequest, caller: Caller, settings: Settings, list_id: int
) -> Template:
    page = read_page(request.query_params.dict())
    async with reading(request) as reads:
        one = await read_list(reads, caller, list_id)
        wanted = CardFilter(one.query, status="all")
        answer = await search_cards(reads, caller, wanted, page, settings.read_seconds)
    return show(
        request,
        caller,
        "list.html",
        list=one,
        cards=[card_body(row) for row in answer.found.cards],
        total=answer.found.total,
        total_pages=page.of(answer.found.total).total_pages,
        page=page,
        most=limits.CARDS_PER_LIST,
        search_problem=answer.problems[0][0] if answer.problems else "",
    )


@get("/lists/{list_id:int}/add")
async def add_page(
    request: PageRequest, caller: Caller, settings: Settings, list_id: int
) -> Template:
    """Show the cards that a search finds, before they are added to the list."""
    given = request.query_params.dict()
    wanted, page = read_filter(given), read_page(given)
    asked = bool(wanted.search.strip() or wanted.game)
    async with reading(request) as reads:
        one = await read_list(reads, caller, list_id)
        answer = await search_cards(reads, caller, wanted, page, settings.read_seconds)
    return show(
        request,
        caller,
        "list_add.html",
        list=one,
        cards=[card_body(row) for row in answer.found.cards] if asked else [],
        total=answer.found.total if asked else 0,
        asked=asked,
        wanted=wanted,
        most=limits.CARDS_PER_LIST,
        games=games_of(caller),
        search_problem=answer.problems[0][0] if answer.problems else "",
    )


@post_form("/lists/{list_id:int}/add")
async def add_cards(form: Form, writer: Writer, list_id: int) -> Response[str]:
    done = await writes.add_cards(writer, list_id, selected(form))
    return see(f"/lists/{list_id}", done=added_message(done))


@post_form("/lists/{list_id:int}/remove")
async def remove_cards(form: Form, writer: Writer, list_id: int) -> Response[str]:
    removed = await writes.remove_cards(writer, list_id, chosen(form))
    return see(f"/lists/{list_id}", done=message("list_removed", removed))
