"""The page of cards: a table with the address's search, filter, order and columns. The page shows
the search as chips, the saved searches as views, and one card beside the table if the address names
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from litestar import MediaType, Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.card_table import (
    NAMES,
    WEIGHTS,
    choices_of,
    details_of,
    marks_of,
    shown_to,
)
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.frame import PART
from cardsync.dashboard.ladder import Ladder, ladder_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.card_filters import (
    VIEWS,
    Filter,
    View,
    fault_of,
    filters_in,
    filters_of,
    joined,
    last_value,
)
from cardsync.dashboard.shell import HEADERS, PageRequest, games_of, see, show, url
from cardsync.platform import clock, errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.typed_numbers import read_id, whole
from cardsync.prices.inputs.governing import governing_rules
from cardsync.prices.receipts.explain import pin_of
from cardsync.prices.receipts.in_short import Receipt, receipt_of
from cardsync.prices.receipts.schemas import ExplainedPin
from cardsync.prices.receipts.some_cards import live_steps
from cardsync.prices.recommendations.schemas import CardBadges
from cardsync.prices.rules import rule_sets
from cardsync.shop.activity.feed import names_in
from cardsync.stock.cards import saved_searches
from cardsync.stock.cards.card_columns import COLUMNS, choose_columns, chosen_columns, read_columns
from cardsync.stock.cards.card_filter import CardFilter, CardPage, ids_of, read_filter, read_page
from cardsync.stock.cards.market_trend import Trend, market_trends
from cardsync.stock.cards.names_in_search import with_names
from cardsync.stock.cards.queries import (
    cards_of,
    count_cards,
    order_of_cards,
    read_card,
    search_cards,
)
from cardsync.stock.cards.schemas import CardBody, CardRow, SearchAnswer, card_body
from cardsync.stock.lists.seller_lists import names_of_lists
from cardsync.stock.search.chips import Chip, chips_of, with_part
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.meant_flags import meant
from cardsync.web.forms import Form
from cardsync.web.request import opened, provide_settings, reading


@dataclass(frozen=True)
class CardsRequest:
    """The filter, page and columns that an address names. `term` was typed beside the chips and is
    also part of the search in `wanted`.
    """

    wanted: CardFilter
    page: CardPage
    columns: tuple[str, ...]
    term: str
    card_id: int | None
    edit: str

    @property
    def address(self) -> Callable[..., str]:
        return partial(address_of, self.wanted, self.page, self.columns)


def read_asked(given: Mapping[str, Sequence[str]]) -> CardsRequest:
    """Read an address of the page. Raises InvalidPayload."""
    term = joined(last_value(given, "term"), filters_in(given))
    search = joined(last_value(given, "search"), term)
    return CardsRequest(
        read_filter({**given, "search": [search]}),
        read_page(given),
        read_columns(last_value(given, "columns")),
        term,
        read_id(last_value(given, "card")),
        last_value(given, "edit"),
    )


@get("/cards")
async def cards_page(request: PageRequest, caller: Caller) -> Template | Response[str]:
    by_script = "hx-request" in request.headers
    chips, quick = list[Chip](), list[Filter]()
    async with reading(request) as reads:
        asked = read_asked(await _with_names(reads, caller, request.query_params.dict()))
        if asked.term and not by_script:
            return see(asked.address())
        wanted, page, address = asked.wanted, asked.page, asked.address
        with suppress(QueryError):
            chips, quick = chips_of(wanted.search), filters_of(wanted.search)
        lists, searches, columns, answer = await at_once(
            names_of_lists(reads, caller),
            saved_searches.names_of_searches(reads, caller),
            _columns(reads, caller, asked),
            _found(request, reads, caller, asked),
        )
        found = answer.found
        (marks, trends, beside), rule_names, peek = await at_once(
            details_of(reads, caller, columns, found.cards),
            _rule_names(reads, caller, columns, found.cards),
            _peek(reads, caller, asked.card_id),
        )
    fault = fault_of(wanted.search, *answer.problems[0]) if answer.problems else None
    here = {"page": page.page if page.page > 1 else None, "card": asked.card_id}
    return show(
        request,
        caller,
        "cards.html",
        # A form also sends its empty fields, and the browser's address should have none of them.
        headers={"HX-Push-Url": address(**here)} if by_script else None,
        cards=[card_body(row) for row in found.cards],
        marks=marks,
        trends=trends,
        beside=beside,
        rule_names=rule_names,
        rules=await _rules(request, caller) if asked.edit == "filters" else [],
        peek=peek,
        total=found.total,
        has_more=found.has_more,
        worth=found.worth,
        total_pages=page.of(found.total).total_pages,
        page=page,
        wanted=wanted,
        chips=chips,
        quick=quick,
        fault=fault,
        meant=meant(wanted.search) if not (found.total or fault) else "",
        games=games_of(caller),
        address=address,
        lists=[(str(list_id), name) for list_id, name in lists],
        searches=searches,
        views=[View(*view) for view in VIEWS] + [View(one.query, one.name) for one in searches],
        columns=columns,
        asked=",".join(asked.columns),
        editing=asked.edit,
        choices=choices_of(columns),
        others=[name for name in shown_to(caller, COLUMNS) if name not in columns],
        names=NAMES,
        weights=WEIGHTS,
    )


async def _found(
    request: PageRequest, reads: Reading, caller: Caller, asked: CardsRequest
) -> SearchAnswer:
    """Search the page's cards. All cards found are counted if the address says so."""
    return await search_cards(
        reads,
        caller,
        asked.wanted,
        asked.page,
        provide_settings(request.app.state).read_seconds,
        worth=caller.sees_revenue,
        counted=request.query_params.get("count") == "all",
    )


async def _with_names(
    reads: Reading, caller: Caller, given: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """Return the address's values, with the names of the shop's cards quoted in the search, so that
    a chip shows a whole name.
    """
    changed = dict(given)
    for name in ("search", "term"):
        with suppress(QueryError):
            text = last_value(given, name)
            changed[name] = [await with_names(reads.rows, caller.seller_id, text)]
    return changed


async def _columns(reads: Reading, caller: Caller, asked: CardsRequest) -> tuple[str, ...]:
    return shown_to(caller, asked.columns or await chosen_columns(reads, caller))


async def _rule_names(
    reads: Reading, caller: Caller, columns: Sequence[str], rows: Sequence[CardRow]
) -> dict[int, str]:
    if "rule" not in columns:
        return {}
    return await governing_rules(reads, caller.seller_id, [row.id for row in rows], clock.now())


async def _rules(request: PageRequest, caller: Caller) -> list[tuple[str, str]]:
    """Return the names of the rules for the form of further filters, for an owner."""
    if caller.role != "owner":
        return []
    async with opened(request) as session:
        rules = await rule_sets.read_all(session, caller)
    return [("", "Any"), *((rule.name, rule.name) for rule in rules)]


class Peek(NamedTuple):
    """One card beside the table, with the receipt of its present target."""

    card: CardBody
    trend: Trend | None
    receipt: Receipt
    ladder: Ladder | None
    mark: CardBadges | None
    pin: ExplainedPin | None
    pinned_by: str


async def _peek(reads: Reading, caller: Caller, card_id: int | None) -> Peek | None:
    """Return the card that the address names; None if there is no such card."""
    if card_id is None:
        return None
    now = clock.now()
    try:
        (row, _), trends = await at_once(
            read_card(reads, caller, card_id, last=False),
            market_trends(reads, caller, [card_id], now),
        )
    except errors.NotFound:
        return None
    card = card_body(row)
    marks, pin, steps = await at_once(
        marks_of(reads, caller, [row]),
        pin_of(reads, caller.seller_id, row.marketplace_id, now),
        _steps(reads, caller, card, now),
    )
    by = await pinned_by(reads, caller, pin)
    mark, ladder = marks.get(card_id), ladder_of(card, steps)
    return Peek(card, trends.get(card_id), receipt_of(steps), ladder, mark, pin, by)


async def _steps(
    reads: Reading, caller: Caller, card: CardBody, now: datetime
) -> list[dict[str, object]]:
    return [] if card.contribution else await live_steps(reads, caller, card.id, now)


async def pinned_by(session: Source, caller: Caller, pin: ExplainedPin | None) -> str:
    """Return the name of the member who pinned a card, capitalized for the beginning of
    a sentence.
    """
    if pin is None or pin.by in (None, caller.actor):
        return "You"
    name = (await names_in(session, caller, [pin.by])).get(pin.by, pin.by)
    return name[:1].upper() + name[1:]


@get("/cards/count", opt=PART)
async def count_of_search(request: PageRequest, caller: Caller) -> Template:
    """Show the number of all cards that a search finds, for a page that shows its rows first."""
    asked = read_asked(request.query_params.dict())
    async with reading(request) as reads:
        total, worth = await count_cards(reads, caller, asked.wanted, worth=caller.sees_revenue)
    return show(
        request,
        caller,
        "cards_counted.html",
        has_more=False,
        total=total,
        total_pages=asked.page.of(total).total_pages,
        worth=worth,
        page=asked.page,
    )


@get("/cards/order", opt=PART)
async def order_of_search(request: PageRequest, caller: Caller) -> Response[bytes]:
    """Send the ids of all cards that a search finds, in their order; the scrolling table then
    requests rows by these ids.
    """
    asked = read_asked(request.query_params.dict())
    async with reading(request) as reads:
        ids = await order_of_cards(reads, caller, asked.wanted, asked.page)
    return Response(f"[{ids}]".encode(), media_type=MediaType.JSON, headers=HEADERS)


@get("/cards/more", opt=PART)
async def more_cards(request: PageRequest, caller: Caller) -> Template:
    """Show the rows of the requested cards, which a script inserts into the scrolling table, and
    the message of the form that led here.
    """
    given = request.query_params.dict()
    asked = read_asked(given)
    ids = ids_of(last_value(given, "ids"))
    if not 0 < len(ids) <= limits.CARDS_PER_PAGE_MOST:
        raise errors.InvalidPayload(f"ids: from 1 to {limits.CARDS_PER_PAGE_MOST} card IDs")
    async with reading(request) as reads:
        columns, rows = await at_once(_columns(reads, caller, asked), cards_of(reads, caller, ids))
        (marks, trends, beside), rule_names = await at_once(
            details_of(reads, caller, columns, rows), _rule_names(reads, caller, columns, rows)
        )
    return show(
        request,
        caller,
        "cards_more.html",
        cards=[card_body(row) for row in rows],
        marks=marks,
        trends=trends,
        beside=beside,
        rule_names=rule_names,
        page=asked.page,
        columns=columns,
        weights=WEIGHTS,
        address=asked.address,
    )


@get("/cards/peek", opt=PART)
async def peek_at_card(request: PageRequest, caller: Caller) -> Template:
    """Show one card as the part of the page beside the table."""
    asked = read_asked(request.query_params.dict())
    async with reading(request) as reads:
        peek = await _peek(reads, caller, asked.card_id)
    return show(
        request,
        caller,
        "card_peek.html",
        peek=peek,
        wanted=asked.wanted,
        page=asked.page,
        address=asked.address,
    )


def address_of(
    wanted: CardFilter,
    shown: CardPage,
    columns: tuple[str, ...] = (),
    /,
    **changed: object,
) -> str:
    """Return the address of the same table with the changed parameters."""
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
    sent = form.all("column") or form["columns"].split(",")
    columns = [name for name in sent if name]
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
    """Rename, move or delete a saved search, depending on the form's button."""
    action, now = form["action"], clock.now()
    if action == "delete":
        await saved_searches.delete_search(bounded, caller, search_id, now)
        notice = message("search_deleted")
    elif (position := whole(action)) is not None:
        place = {"position": position}
        await saved_searches.change_search(bounded, caller, search_id, place, now)
        notice = message("search_moved")
    else:
        change = {"name": form["name"]}
        await saved_searches.change_search(bounded, caller, search_id, change, now)
        notice = message("search_renamed")
    return see("/cards", done=notice, search=form["search"])


ROUTES = [
    cards_page,
    count_of_search,
    order_of_search,
    more_cards,
    peek_at_card,
    keep_columns,
    save_search,
    change_search,
]
