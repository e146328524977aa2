"""The page of cards: the address's search, filter and order come in; a table of one page of the
shop's cards, with the search as chips, goes out.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from litestar import get
from litestar.response import Template

from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.cards.filters import CardFilter, CardPage, read_filter, read_page
from cardsync.cards.queries import search_cards
from cardsync.cards.shown import card_body
from cardsync.dashboard.shell import PageRequest, show, url
from cardsync.lists.lists import names_of_lists
from cardsync.search.fields import QueryError
from cardsync.search.parser import parse
from cardsync.search.tree import And, Tree, all_of, print_query
from cardsync.web.request import provide_settings, reading

SORTS = ("name", "set", "number", "price", "target", "quantity", "updated", "location")


@dataclass(frozen=True)
class Chip:
    """One part of a search, and the search without it."""

    text: str
    without: str


def chips_of(search: str) -> list[Chip]:
    """Return the parts that all must hold, as chips. Pure. Raises QueryError."""
    tree = parse(search)
    parts = tree.parts if isinstance(tree, And) else (tree,)
    return [
        Chip(print_query(part), print_query(_without(parts, index)))
        for index, part in enumerate(parts)
    ]


def _without(parts: tuple[Tree, ...], index: int) -> Tree:
    return all_of([part for at, part in enumerate(parts) if at != index])


@get("/cards", opt=BY_FORM)
async def cards_page(request: PageRequest, caller: Caller) -> Template:
    given = request.query_params.dict()
    wanted, page = read_filter(given), read_page(given)
    settings = provide_settings(request.app.state)
    chips = list[Chip]()
    with suppress(QueryError):
        chips = chips_of(wanted.search)
    async with reading(request) as reads:
        lists = await names_of_lists(reads, caller)
        answer = await search_cards(reads, caller, wanted, page, settings.read_seconds)
    found = answer.found
    problem, at = answer.problems[0] if answer.problems else ("", 0)
    address = partial(address_of, wanted, page)
    return show(
        request,
        caller,
        "cards.html",
        # A form sends its empty fields too; the address bar shows none of them.
        headers={"HX-Push-Url": address(page=page.page if page.page > 1 else None)}
        if "hx-request" in request.headers
        else None,
        cards=[card_body(row) for row in found.cards],
        total=found.total,
        total_pages=-(-found.total // page.per_page),
        page=page,
        wanted=wanted,
        chips=chips,
        search_problem=problem,
        before_problem=wanted.search[:at],
        games=[("", "All games"), *((line, line.title()) for line in caller.account.product_lines)],
        address=address,
        lists=[(str(list_id), name) for list_id, name in lists],
    )


def address_of(wanted: CardFilter, shown: CardPage, /, **changed: Any) -> str:
    """Return the address of the same page with other parameters."""
    query = {
        "search": wanted.search,
        "game": wanted.game,
        "status": "" if wanted.status == "active" else wanted.status,
        "sort": "" if shown.sort == "name" else shown.sort,
        "direction": "" if shown.direction == "asc" else shown.direction,
        "page": None,
    }
    return url("/cards", **query | changed)
