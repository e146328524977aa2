"""The page of cards: a table by the address's search, filter, order and columns, with the search as
chips and the saved searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.cards import saved_searches
from cardsync.cards.bulk_selection import read_id
from cardsync.cards.card_columns import COLUMNS, choose_columns, chosen_columns, read_columns
from cardsync.cards.card_filter import CardFilter, CardPage, read_filter, read_page
from cardsync.cards.queries import cards_behind, search_cards
from cardsync.cards.shown import CardRow, card_body, cards_behind_body
from cardsync.dashboard.form_handlers import Form, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, games_of, see, show, url
from cardsync.lists.seller_lists import names_of_lists
from cardsync.recommendations.badges import badges_of
from cardsync.recommendations.shown import CardBadges
from cardsync.search.chips import Chip, chips_of, with_part
from cardsync.search.fields import QueryError
from cardsync.web.request import provide_database, provide_settings, reading

NAMES = {
    "set": "Set", "number": "Number", "rarity": "Rarity", "condition": "Condition",
    "printing": "Printing", "language": "Language", "quantity": "Stock", "price": "Price",
    "target": "Target", "change": "Change", "market": "Market", "low": "Low",
    "low_with_shipping": "Low with shipping", "direct_low": "Direct low", "location": "Place",
    "lists": "Lists", "game": "Game", "marketplace_id": "SKU", "updated": "Updated",
}  # fmt: skip
# Parts that one click adds to a search or takes away.
FILTERS = (
    ("is:foil", "Foil"),
    ("is:pinned", "Pinned"),
    ("is:held", "Held"),
    ("is:underpriced", "Underpriced"),
    ("is:overpriced", "Overpriced"),
    ("is:unpriced", "Without a price"),
    ("is:unshelved", "Not on a shelf"),
    ("is:custom", "Custom"),
)


class Filter(NamedTuple):
    """A part that the search has or has not, and the search with it changed."""

    name: str
    on: bool
    search: str


class Fault(NamedTuple):
    """A search that cannot be read, cut at the word that is wrong."""

    message: str
    before: str
    word: str
    after: str


def filters_of(search: str) -> list[Filter]:
    """Return the quick filters of a search. Pure. Raises QueryError."""
    has = {chip.text for chip in chips_of(search)}
    return [Filter(name, part in has, with_part(search, part)) for part, name in FILTERS]


def fault_of(search: str, message: str, at: int) -> Fault:
    """Cut a search at the word that begins at an offset. Pure."""
    rest = search[at:]
    word = rest.split(None, 1)[0] if rest.strip() else ""
    return Fault(message, search[:at], word, rest[len(word) :])


@get("/cards", opt=BY_FORM)
async def cards_page(request: PageRequest, caller: Caller) -> Template:
    given = request.query_params.dict()
    wanted, page = read_filter(given), read_page(given)
    settings = provide_settings(request.app.state)
    asked = read_columns((given.get("columns") or [""])[-1])
    chips, quick = list[Chip](), list[Filter]()
    with suppress(QueryError):
        chips, quick = chips_of(wanted.search), filters_of(wanted.search)
    async with reading(request) as reads:
        lists = await names_of_lists(reads, caller)
        columns = asked or await chosen_columns(reads, caller)
        answer = await search_cards(reads, caller, wanted, page, settings.read_seconds)
    async with provide_database(request.app.state).tenant(caller.seller_id) as session:
        searches = await saved_searches.saved_searches(session, caller)
        marks = await marks_of(session, caller, answer.found.cards)
    found = answer.found
    fault = fault_of(wanted.search, *answer.problems[0]) if answer.problems else None
    address = partial(address_of, wanted, page, asked)
    return show(
        request,
        caller,
        "cards.html",
        # A form sends its empty fields too; the address bar shows none of them.
        headers={"HX-Push-Url": address(page=page.page if page.page > 1 else None)}
        if "hx-request" in request.headers
        else None,
        cards=[card_body(row) for row in found.cards],
        marks=marks,
        total=found.total,
        more=_more(wanted, page, asked, found.cards[-1].id)
        if found.total > page.offset + len(found.cards) > 0
        else "",
        total_pages=-(-found.total // page.per_page),
        page=page,
        wanted=wanted,
        chips=chips,
        quick=quick,
        fault=fault,
        games=games_of(caller),
        address=address,
        lists=[(str(list_id), name) for list_id, name in lists],
        searches=searches,
        columns=columns,
        asked=",".join(asked),
        editing=(given.get("edit") or [""])[-1] == "columns",
        choices=choices_of(columns),
        others=[name for name in COLUMNS if name not in columns],
        names=NAMES,
    )


def _more(
    wanted: CardFilter,
    page: CardPage,
    columns: tuple[str, ...],
    behind: int | None,
) -> str:
    """Return the address of the rows behind a card; empty if there are none."""
    if behind is None:
        return ""
    address = address_of(wanted, page, columns, behind=behind)
    return address.replace("/cards?", "/cards/more?", 1)


@get("/cards/more", opt=BY_FORM)
async def more_cards(request: PageRequest, caller: Caller) -> Template:
    """Show the rows behind a card, which scrolling adds to the table."""
    given = request.query_params.dict()
    wanted, page = read_filter(given), read_page(given)
    asked = read_columns((given.get("columns") or [""])[-1])
    behind = read_id((given.get("behind") or [""])[-1])
    if behind is None:
        raise errors.InvalidPayload("behind: the id of a card")
    async with reading(request) as reads:
        columns = asked or await chosen_columns(reads, caller)
        rows = await cards_behind(reads, caller, wanted, page, behind)
    async with provide_database(request.app.state).tenant(caller.seller_id) as session:
        marks = await marks_of(session, caller, rows)
    found = cards_behind_body(rows, page)
    return show(
        request,
        caller,
        "cards_more.html",
        cards=found.cards,
        marks=marks,
        columns=columns,
        more=_more(wanted, page, asked, found.behind),
    )


async def marks_of(
    session: AsyncSession,
    caller: Caller,
    rows: Sequence[CardRow],
) -> dict[int, CardBadges]:
    """Return the badges of the shown cards, by the card's id."""
    ids = [row.id for row in rows]
    return {one.card_id: one for one in await badges_of(session, caller, [], ids, clock.now())}


class Choice(NamedTuple):
    """A column, and the columns with it earlier, later or away; empty where that cannot be."""

    name: str
    earlier: str
    later: str
    away: str


def choices_of(columns: tuple[str, ...]) -> list[Choice]:
    """Return what can be done with each column. Pure."""
    last = len(columns) - 1
    return [
        Choice(
            name,
            _moved(columns, place, place - 1) if place else "",
            _moved(columns, place, place + 1) if place < last else "",
            ",".join(one for one in columns if one != name),
        )
        for place, name in enumerate(columns)
    ]


def _moved(columns: tuple[str, ...], place: int, to: int) -> str:
    moved = list(columns)
    moved.insert(to, moved.pop(place))
    return ",".join(moved)


def address_of(
    wanted: CardFilter,
    shown: CardPage,
    columns: tuple[str, ...] = (),
    /,
    **changed: Any,
) -> str:
    """Return the address of the same page with other parameters."""
    query = {
        "search": wanted.search,
        "game": wanted.game,
        "status": "" if wanted.status == "active" else wanted.status,
        "sort": "" if shown.sort == "name" else shown.sort,
        "direction": "" if shown.direction == "asc" else shown.direction,
        "columns": ",".join(columns),
        "page": None,
    }
    return url("/cards", **query | changed)


@post_form("/cards/columns")
async def keep_columns(caller: Caller, form: Form, bounded: AsyncSession) -> Response[str]:
    shop = form["whose"] == "shop"
    columns = [name for name in form["columns"].split(",") if name]
    await choose_columns(bounded, caller, columns, clock.now(), shop=shop)
    notice = message("columns_of_shop" if shop else "columns_of_member")
    return see("/cards", done=notice, search=form["search"])


@post_form("/cards/searches")
async def save_search(caller: Caller, form: Form, bounded: AsyncSession) -> Response[str]:
    search, game = form["search"], form["game"]
    try:
        query = with_part(search, f'game:"{game}"') if game else search
    except QueryError as e:
        raise errors.InvalidQuery(f"query: {e}") from e
    row = await saved_searches.save_search(bounded, caller, form["name"], query, clock.now())
    return see("/cards", done=message("search_saved"), search=row.query)


@post_form("/cards/searches/{search_id:int}")
async def change_search(
    caller: Caller, form: Form, bounded: AsyncSession, search_id: int
) -> Response[str]:
    """Rename, move or delete a saved search, as the form's button says."""
    action, now = form["action"], clock.now()
    if action == "delete":
        await saved_searches.delete_search(bounded, caller, search_id, now)
        notice = message("search_deleted")
    elif action.isascii() and action.isdigit():
        place = {"position": int(action[:9])}
        await saved_searches.change_search(bounded, caller, search_id, place, now)
        notice = message("search_moved")
    else:
        change = {"name": form["name"]}
        await saved_searches.change_search(bounded, caller, search_id, change, now)
        notice = message("search_renamed")
    return see("/cards", done=notice, search=form["search"])


ROUTES = [cards_page, more_cards, keep_columns, save_search, change_search]
