"""The page that finds cards, orders, buyers, sets, lists, rules and pages by a few words. The
palette shows the same links.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from litestar import get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.frame import PART, PART_IF_NAMED
from cardsync.dashboard.goals import PALETTE, goals_for
from cardsync.dashboard.goals import found as goals_of
from cardsync.dashboard.shell import PageRequest, show, url
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import read_paging
from cardsync.prices.rules.rule_sets import names_of_rules
from cardsync.sales.orders.order_filter import OrderFilter
from cardsync.sales.orders.queries import find_orders
from cardsync.sales.orders.schemas import OrderRow
from cardsync.stock.cards.card_filter import CardFilter, CardPage
from cardsync.stock.cards.queries import complete_search, search_cards
from cardsync.stock.cards.schemas import CardBody, card_body
from cardsync.stock.lists.seller_lists import names_of_lists
from cardsync.stock.search.chips import chips_of
from cardsync.stock.search.fields import QueryError
from cardsync.web.request import provide_settings, reading

MOST: Final = 6
WORDS_MOST: Final = 200
_DAY: Final = 86_400


class Hit(NamedTuple):
    """A link to one result. A card has its picture."""

    href: str
    name: str
    detail: str = ""
    icon: str = ""
    card: CardBody | None = None


class Kind(NamedTuple):
    """The results of one kind. `total` is None if it was not counted; `all_of_them` is the address
    of all results, if there are more.
    """

    name: str
    hits: list[Hit]
    total: int | None = 0
    all_of_them: str = ""


Part = Callable[[PageRequest, Caller, Reading, str], Coroutine[Any, Any, list[Kind]]]


@get("/find", opt=PART_IF_NAMED)
async def find_page(request: PageRequest, caller: Caller) -> Template:
    """Show the results for the words. `part` restricts them to one entry of PARTS, so that the
    palette shows each part as it arrives, and `most` limits that part's cards.
    """
    words = (request.query_params.get("search") or "").strip()[:WORDS_MOST]
    part = PARTS.get(request.query_params.get("part", ""))
    sections = [[part]] if part else _SECTIONS
    found = await asyncio.gather(*(_read(request, caller, words, one) for one in sections if words))
    kinds = [kind for kinds in found for kind in kinds if kind.hits]
    return show(request, caller, "found.html" if part else "find.html", words=words, kinds=kinds)


async def _read(
    request: PageRequest, caller: Caller, words: str, parts: Sequence[Part]
) -> list[Kind]:
    """Return the results of parts that share the messages of a reading."""
    async with reading(request) as reads:
        found = await at_once(*(part(request, caller, reads, words) for part in parts))
    return [kind for kinds in found for kind in kinds]


@get(PALETTE, opt=PART)
async def palette_pages(request: PageRequest, caller: Caller) -> Template:
    """Show the palette's fixed entries. The palette requests them when it is first opened, and the
    browser caches them.
    """
    headers = {"Cache-Control": f"private, max-age={_DAY}"}
    return show(request, caller, "palette_pages.html", headers=headers, goals=goals_for(caller))


def as_search(words: str) -> str:
    """Return words as a search of cards. Words that the search language cannot parse become a
    quoted text. Pure.
    """
    try:
        chips_of(words)
    except QueryError:
        return '"' + words.replace('"', " ").replace("\\", " ") + '"'
    return words


async def _cards(request: PageRequest, caller: Caller, reads: Reading, words: str) -> list[Kind]:
    """Find cards in stock. If few match, sold-out cards fill the list."""
    [active] = await _in_stock(request, caller, reads, words)
    if active.total is None or len(active.hits) == MOST:
        return [active]
    [gone] = await _sold_out(request, caller, reads, words)
    total = active.total + (gone.total or 0)
    hits = [*active.hits, *gone.hits][:MOST]
    return [gone._replace(hits=hits, total=total)]


async def _in_stock(request: PageRequest, caller: Caller, reads: Reading, words: str) -> list[Kind]:
    return await _of_status(request, caller, reads, words, "", counted=False)


async def _sold_out(request: PageRequest, caller: Caller, reads: Reading, words: str) -> list[Kind]:
    return await _of_status(request, caller, reads, words, "gone", counted=True)


async def _of_status(
    request: PageRequest,
    caller: Caller,
    reads: Reading,
    words: str,
    status: Literal["", "gone"],
    *,
    counted: bool,
) -> list[Kind]:
    search = as_search(words)
    seconds = provide_settings(request.app.state).read_seconds
    wanted = CardFilter(search=search, status=status or "active")
    most = read_paging(None, request.query_params.get("most"), MOST, MOST).per_page
    page = CardPage(per_page=most)
    found = (await search_cards(reads, caller, wanted, page, seconds, counted=counted)).found
    hits = [
        Hit(f"/cards/{row.id}", row.product_name, _printing(row), card=row)
        for row in map(card_body, found.cards)
    ]
    every = url("/cards", search=search, status=status and "all")
    return [Kind("Cards", hits, None if found.has_more else found.total, every)]


def _printing(card: CardBody) -> str:
    return " · ".join(part for part in (card.set_name, card.number, card.condition_label) if part)


async def _orders(_: PageRequest, caller: Caller, reads: Reading, words: str) -> list[Kind]:
    """Find orders by number and buyer, and the buyers of these orders whose names match."""
    wanted = OrderFilter(search=words, per_page=MOST, items_per_order=0, counted=False)
    found = await find_orders(reads, caller, wanted)
    hits = [
        Hit(f"/orders/{one.id}", one.order_number, _order(one), "package") for one in found.orders
    ]
    buyers = dict.fromkeys(
        one.buyer_name
        for one in found.orders
        if one.buyer_name and words.casefold() in one.buyer_name.casefold()
    )
    return [
        Kind("Orders", hits, None if found.has_more else found.total, url("/orders", search=words)),
        Kind("Buyers", [Hit(url("/orders", search=name), name, "", "user") for name in buyers]),
    ]


def _order(order: OrderRow) -> str:
    return " · ".join(part for part in (order.buyer_name, order.status) if part)


async def _names(_: PageRequest, caller: Caller, reads: Reading, words: str) -> list[Kind]:
    """Find sets, lists and, for an owner, rules by their names."""
    sets, lists, rules = await at_once(
        complete_search(reads, caller, f'set:"{words.replace(chr(34), " ")}'),
        names_of_lists(reads, caller),
        names_of_rules(reads, caller),
    )
    return [
        Kind(
            "Sets",
            [
                Hit(url("/cards", search=one.text), one.text.removeprefix("set:").strip('"'), "",
                    "layers")
                for one in sets[:MOST]
                if one.text.startswith("set:")
            ],
        ),
        Kind("Lists", _named(words, "/lists", lists, "list")),
        Kind("Rules", _named(words, "/pricing/rules", rules, "tag")),
    ]  # fmt: skip


def _named(
    words: str,
    path: str,
    things: Iterable[tuple[int, str]],
    icon: str,
) -> list[Hit]:
    """Return links to the things whose names contain the words. Pure."""
    found = [
        Hit(f"{path}/{id}", name, "", icon)
        for id, name in things
        if words.casefold() in name.casefold()
    ]
    return found[:MOST]


async def _pages(_: PageRequest, caller: Caller, __: Reading, words: str) -> list[Kind]:
    goals = goals_of(words, goals_for(caller))
    hits = [Hit(one.path, one.name, one.where, one.icon) for one in goals]
    return [Kind("Pages", hits)]


# The slow searches of cards and of orders run beside each other.
_SECTIONS: Final = ((_pages, _cards), (_orders, _names))
# The palette requests sold-out cards only if few cards in stock match.
PARTS: Final[Mapping[str, Part]] = {
    "cards": _in_stock,
    "sold_out": _sold_out,
    "orders": _orders,
    "names": _names,
}
