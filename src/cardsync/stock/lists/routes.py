"""HTTP routes of lists: read, make, rename and delete them; add and remove cards by ids or by a
search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.openapi.spec import Operation
from litestar.response import Redirect

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING
from cardsync.prices.plans.writer import Writer
from cardsync.stock.cards.bulk_selection import Selection, both, of_query
from cardsync.stock.lists import seller_lists
from cardsync.stock.lists.as_csv import lists_as_csv
from cardsync.stock.lists.schemas import CardListBody, CardsAdded, CardsRemoved, Lists
from cardsync.web import as_csv
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.own_queries import TEXT, TEXTS, described
from cardsync.web.pages import to_sign_in
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_EITHER,
    FOR_OWNERS,
    WITH_JSON_BODY,
    AnyRequest,
    Deleted,
    problems,
    storable,
)


class ListName(msgspec.Struct):
    """The name of a list: 1 to 100 characters. No other list may have the same name, in upper or
    lower case.
    """

    name: Annotated[
        Json, Like(Annotated[str, msgspec.Meta(min_length=1, max_length=100)], needed=True)
    ] = None
    """1 to 100 characters; no other list may have the same name, in upper or lower case"""


def _asked(given: dict[str, list[str]]) -> dict[str, int]:
    """Return the ids in the query that name a card; an id that is too large becomes 0, which is the
    id of no card.
    """
    return {
        name: read_id(given[name][-1].strip()) or 0
        for name in ("marketplace_id", "card_id")
        if name in given
    }


@get("/lists", responses=problems(*BEHIND_A_KEY))
async def read_lists(
    request: AnyRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
    marketplace_id: str | None = None,
    card_id: str | None = None,
) -> Lists:
    """All lists. With `marketplace_id` or `card_id`, each list shows whether it contains that
    card.
    """
    asked = _asked(request.query_params.dict())
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        found = await seller_lists.all_lists(reading, caller, asked)
    return Lists(found, limits.CARDS_PER_LIST)


@get(
    "/lists/export.csv",
    responses={200: as_csv.answer("The lists in their order"), **problems(*BEHIND_A_KEY)},
)
async def export_lists(caller: Caller, heavy: HeavyWork) -> Response[bytes]:
    """All lists with their counts, as a CSV."""
    return as_csv.file(await lists_as_csv(heavy, caller), "lists")


@get("/lists/{list_id:int}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def read_list(
    caller: Caller,
    database: Database,
    settings: Settings,
    list_id: int,
) -> CardListBody:
    """One list with its counts. A search for the list's `query` finds its cards."""
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        return await seller_lists.read_list(reading, caller, list_id)


# Rules may select cards by list, so a change of a list may change prices.
LIMITED = (errors.NeedsReview, errors.ConfirmationNeeded, errors.RefusedByGrant)
OF_A_NAME = (errors.InvalidName, errors.NameTaken)


@post(
    "/lists",
    opt=WRITES,
    responses=problems(
        *FOR_EITHER,
        *WITH_JSON_BODY,
        *OF_A_NAME,
        errors.ListLimitReached,
        *LIMITED,
    ),
)
async def create_list(writer: Writer, data: ListName) -> CardListBody:
    """Make a list, at the last position."""
    return await writes.create_list(writer, data.name)


OF_AN_OWNER = (*FOR_OWNERS, errors.NotFound, *LIMITED)


@patch(
    "/lists/{list_id:int}",
    opt=WRITES,
    responses=problems(*OF_AN_OWNER, *WITH_JSON_BODY, *OF_A_NAME),
)
async def rename_list(writer: Writer, list_id: int, data: ListName) -> CardListBody:
    """Rename a list. Its slug does not change."""
    return await writes.rename_list(writer, list_id, data.name)


@delete("/lists/{list_id:int}", status_code=200, opt=WRITES, responses=problems(*OF_AN_OWNER))
async def delete_list(writer: Writer, list_id: int) -> Deleted:
    """Delete a list. Its cards do not change."""
    await writes.delete_list(writer, list_id)
    return Deleted(True)


@post(
    "/lists/{list_id:int}/cards",
    status_code=200,
    opt=WRITES,
    responses=problems(
        *FOR_EITHER,
        *WITH_JSON_BODY,
        errors.NotFound,
        errors.ListFull,
        errors.StockPromotedReload,
        *LIMITED,
    ),
)
async def add_cards(writer: Writer, list_id: int, data: Selection) -> CardsAdded:
    """Add the selected cards to the list, in the order of the selection, up to the list's cap."""
    done = await writes.add_cards(writer, list_id, data)
    one = await seller_lists.one_list(writer.session, writer.caller, list_id)
    return CardsAdded(one, *done)


@get(
    "/lists/{list_id:int}/cards",
    include_in_schema=False,
    exception_handlers={errors.Unauthorized: to_sign_in},
)
async def open_add_cards_url(request: AnyRequest, caller: Caller, list_id: int) -> Redirect:
    """Redirect a browser that opens a list's `add_cards_url` to the page that adds cards. Programs
    get an error, because they read a list's cards by a search for its `query`.
    """
    if caller.member_id is None:
        raise errors.MethodNotAllowed(
            "GET is not allowed here; search for the list's `query` to read its cards",
            headers={"Allow": "DELETE, OPTIONS, POST"},
        )
    given = storable(request.query_params.dict())
    kept = {name: given[name][-1] for name in ("search", "game", "status") if name in given}
    where = f"/lists/{list_id}/add"
    return Redirect(f"{where}?{urlencode(kept)}" if kept else where, status_code=303)


_SELECTED = {
    "marketplace_ids": ("These listings, with commas too; custom ones are negative", TEXTS),
    "card_ids": ("These inventory rows, with commas too", TEXTS),
    "search": ("What a search in the language of docs/search.md finds", TEXT),
    "game": ("Cards of this product line", TEXT),
    "product_line": ("The same as `game`", TEXT),
    "status": ("active by default; gone or all", TEXT),
    "selected_ids": (
        "Of these inventory rows only, with commas too. Empty or malformed: none",
        TEXTS,
    ),
}


@dataclass
class _SelectionQuery(Operation):
    """An operation that parses the selection in its query itself, so that a bad value is refused
    with this service's own message.
    """

    def __post_init__(self) -> None:
        self.parameters = [*(self.parameters or ()), *described(_SELECTED)]


@delete(
    "/lists/{list_id:int}/cards",
    status_code=200,
    opt=WRITES,
    operation_class=_SelectionQuery,
    responses=problems(*OF_AN_OWNER, *WITH_JSON_BODY),
)
async def remove_cards(
    request: AnyRequest, writer: Writer, list_id: int, data: Selection | None = None
) -> CardsRemoved:
    """Remove the selected cards from the list.

    The selection is in the body, in the query, or in both. In the query, ids are separated by
    commas, or their parameter is repeated.
    """
    selection = both(data, of_query(storable(request.query_params.dict())))
    removed = await writes.remove_cards(writer, list_id, selection)
    one = await seller_lists.one_list(writer.session, writer.caller, list_id)
    return CardsRemoved(one, removed)


router = Router(
    path="",
    route_handlers=[
        read_lists,
        export_lists,
        read_list,
        create_list,
        rename_list,
        delete_list,
        add_cards,
        open_add_cards_url,
        remove_cards,
    ],
    # These operations may wait for other writes to lists; `WRITING` limits that wait.
    dependencies=WRITING,
    tags=["lists"],
)
