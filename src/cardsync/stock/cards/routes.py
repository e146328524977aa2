"""HTTP routes by which sellers and assistants read cards: GET /api/cards, the completion of its
search, and a card with its price history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, cast

from litestar import Response, Router, get
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIType, Operation, Schema
from litestar.params import QueryParameter
from litestar.response import Stream

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.stock.cards.as_csv import HEADERS, cards_as_csv
from cardsync.stock.cards.card_filter import read_filter, read_page
from cardsync.stock.cards.queries import (
    cards_behind,
    complete_search,
    read_card,
    read_whole_card,
    search_cards,
)
from cardsync.stock.cards.schemas import (
    CardsBehind,
    CardsPage,
    CardWithHistory,
    CompletionBody,
    CompletionsBody,
    cards_behind_body,
    cards_page,
    with_history,
)
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.own_queries import TEXT, TEXTS, described, words
from cardsync.web.request import (
    BEHIND_A_KEY,
    ApiRequest,
    Polled,
    problems,
    provide_caller,
    provide_heavy,
    provide_settings,
    reading,
)

_NUMBER = Schema(type=OpenAPIType.INTEGER)
_QUERY = {
    "search": ("A search in the language of docs/search.md", TEXT),
    "game": ("Cards of this product line", TEXT),
    "product_line": ("The same as `game`", TEXT),
    "status": (
        "active by default; `is:gone` in the search shows gone cards too",
        words("active", "gone", "all"),
    ),
    "selected_ids": ("Of these cards only: ids, with commas too. Empty or malformed: none", TEXTS),
    "sort": (
        "By name by default; location walks box, then slot",
        words("name", "set", "number", "price", "target", "quantity", "updated", "location"),
    ),
    "direction": (
        "asc by default; cards without the value come last both ways",
        words("asc", "desc"),
    ),
    "page": ("Beyond the last page there is nothing", _NUMBER),
    "per_page": (
        f"{limits.CARDS_PER_PAGE} by default, at most {limits.CARDS_PER_PAGE_MOST}",
        _NUMBER,
    ),
}


def _given(request: ApiRequest) -> dict[str, list[str]]:
    return request.query_params.dict()


@dataclass
class _CardsQuery(Operation):
    """The operation GET /cards. It parses its query itself, so that a bad value is refused with
    this service's own message.
    """

    def __post_init__(self) -> None:
        self.parameters = described(_QUERY)


@get(
    "/cards",
    operation_class=_CardsQuery,
    responses=problems(*BEHIND_A_KEY, errors.InvalidPayload),
)
async def cards(request: ApiRequest) -> Polled[CardsPage]:
    """The seller's cards that a search finds, with their lists and places."""
    caller = provide_caller(request)
    settings = provide_settings(request.app.state)
    given = _given(request)
    wanted, page = read_filter(given), read_page(given)
    async with reading(request) as reads:
        answer = await search_cards(reads, caller, wanted, page, settings.read_seconds)
    return Polled(cards_page(answer, page))


@get("/cards/complete", responses=problems(*BEHIND_A_KEY, errors.InvalidPayload))
async def completions(
    caller: Caller,
    database: Database,
    settings: Settings,
    query_text: Annotated[
        str,
        QueryParameter(
            name="text",
            max_length=limits.SEARCH_CHARACTERS,
            description="A search as far as it is typed, up to the cursor",
        ),
    ] = "",
) -> CompletionsBody:
    """Up to twenty texts that complete the last term of the search, also with the names of the
    seller's own sets, product lines, lists and rules. Texts that begin with the typed letters are
    first.
    """
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        found = await complete_search(reads, caller, query_text)
        return CompletionsBody([struct_of(CompletionBody, one) for one in found])


@dataclass
class _SelectedQuery(Operation):
    """The export of cards, whose query has the filter of GET /cards, but no page."""

    def __post_init__(self) -> None:
        self.parameters = described(
            {name: _QUERY[name] for name in list(_QUERY)[: list(_QUERY).index("sort")]}
        )


@get(
    "/cards/export.csv",
    operation_class=_SelectedQuery,
    responses={
        200: ResponseSpec(
            bytes,
            description="The cards by id, with one line of names; `locations` and `lists` are separated by blanks. A text that a spreadsheet would calculate begins with an apostrophe",
            media_type="text/csv",
            generate_examples=False,
        ),
        **problems(*BEHIND_A_KEY, errors.InvalidPayload),
    },
)
async def export_cards(request: ApiRequest) -> Response[bytes]:
    """All of the seller's cards that a search finds, as a streamed CSV file."""
    state = request.app.state
    parts = await cards_as_csv(
        provide_heavy(state), provide_caller(request), read_filter(_given(request))
    )
    return cast("Response[bytes]", Stream(parts, media_type="text/csv", headers=HEADERS))


@get("/cards/{card_id:int}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def card(
    caller: Caller,
    database: Database,
    heavy: HeavyWork,
    settings: Settings,
    card_id: int,
    history: Literal["recent", "all"] = "recent",
) -> CardWithHistory:
    """One card, in stock or gone, with the observations of its prices and quantity. With
    `history=all` observations that are too old for the database are included; this takes longer.
    """
    if history == "all":
        now = clock.now()
        return with_history(*await heavy.read(read_whole_card, caller, Work.LONG, now, card_id))
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        return with_history(*await read_card(reading, caller, card_id))


@dataclass
class _BehindQuery(Operation):
    """The operation of the next cards, whose query has the filter and order of GET /cards, but no
    page number.
    """

    def __post_init__(self) -> None:
        filter_parameters = {name: form for name, form in _QUERY.items() if name != "page"}
        self.parameters = [*(self.parameters or ()), *described(filter_parameters)]


@get(
    "/cards/{card_id:int}/behind",
    operation_class=_BehindQuery,
    responses=problems(*BEHIND_A_KEY, errors.NotFound, errors.InvalidPayload),
)
async def next_cards(
    request: ApiRequest,
    card_id: int,
) -> Polled[CardsBehind]:
    """The cards that follow this one in the order of a search."""
    caller = provide_caller(request)
    given = _given(request)
    wanted, page = read_filter(given), read_page(given)
    async with reading(request) as reads:
        found = await cards_behind(reads, caller, wanted, page, card_id)
    return Polled(cards_behind_body(found))


router = Router(
    path="", route_handlers=[cards, completions, export_cards, card, next_cards], tags=["cards"]
)
