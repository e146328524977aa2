"""HTTP routes of saved searches, chosen columns and settled matches."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post, put
from litestar.di import Provide
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.read_json import given_fields
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.stock.cards import card_columns, saved_searches
from cardsync.stock.cards.matches import MatchBody, match_in, read_match
from cardsync.stock.errors import SavedSearchLimitReached
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_EITHER,
    FOR_OWNERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
    provide_bounded_session,
)


class SavedSearchBody(msgspec.Struct):
    """A saved search. `query` is a text in the language of docs/search.md."""

    id: int
    name: str
    query: str


class SavedSearches(msgspec.Struct):
    """The shop's saved searches, in the shop's own order."""

    saved_searches: list[SavedSearchBody]


class SearchToSave(msgspec.Struct):
    """A search to save. `name` has 1 to 100 characters; no other saved search may have the same
    name, in upper or lower case.
    """

    name: Annotated[
        Json, Like(Annotated[str, msgspec.Meta(min_length=1, max_length=100)], needed=True)
    ] = None
    query: Annotated[Json, Like(str, needed=True)] = None


class SearchChanges(msgspec.Struct):
    """Changes of a saved search. Fields that are not sent keep their values; `position` counts from
    1.
    """

    name: Annotated[Json, Like(Annotated[str, msgspec.Meta(min_length=1, max_length=100)])] = (
        msgspec.UNSET
    )
    query: Annotated[Json, Like(str)] = msgspec.UNSET
    position: Annotated[Json, Like(int)] = msgspec.UNSET


OF_A_SEARCH = (errors.InvalidName, errors.NameTaken, errors.InvalidQuery)


@get("/saved_searches", responses=problems(*BEHIND_A_KEY))
async def read_saved_searches(caller: Caller, session: AsyncSession) -> SavedSearches:
    """The shop's saved searches."""
    found = await saved_searches.saved_searches(session, caller)
    return SavedSearches([struct_of(SavedSearchBody, row) for row in found])


@post(
    "/saved_searches",
    opt=WRITES,
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, *OF_A_SEARCH, SavedSearchLimitReached),
)
async def save_search(caller: Caller, session: AsyncSession, data: SearchToSave) -> SavedSearchBody:
    """Save a search at the end of the shop's saved searches."""
    now = clock.now()
    row = await saved_searches.save_search(session, caller, data.name, data.query, now)
    return struct_of(SavedSearchBody, row)


@patch(
    "/saved_searches/{search_id:int}",
    opt=WRITES,
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, *OF_A_SEARCH, errors.NotFound),
)
async def change_search(
    caller: Caller,
    session: AsyncSession,
    search_id: int,
    data: SearchChanges,
) -> SavedSearchBody:
    """Change the name, query or position of a saved search."""
    row = await saved_searches.change_search(
        session, caller, search_id, given_fields(data), clock.now()
    )
    return struct_of(SavedSearchBody, row)


@delete(
    "/saved_searches/{search_id:int}",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_EITHER, errors.NotFound),
)
async def delete_search(caller: Caller, session: AsyncSession, search_id: int) -> Deleted:
    """Delete a saved search."""
    await saved_searches.delete_search(session, caller, search_id, clock.now())
    return Deleted(True)


class Columns(msgspec.Struct):
    """The columns of the cards' table, in their order."""

    columns: list[str]


class ColumnsToKeep(msgspec.Struct):
    """The columns to store, by the names that GET /card_columns returns."""

    columns: list[Annotated[Json, Like(str)]]


@get("/card_columns", responses=problems(*BEHIND_A_KEY))
async def read_columns(caller: Caller, database: Database, settings: Settings) -> Columns:
    """The columns that the caller sees by default: the caller's own, else the shop's."""
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        return Columns(list(await card_columns.chosen_columns(reading, caller)))


@put("/card_columns", opt=WRITES, responses=problems(*FOR_EITHER, *WITH_JSON_BODY))
async def keep_columns(caller: Caller, session: AsyncSession, data: ColumnsToKeep) -> Columns:
    """Store the columns that the caller sees by default. A call with a key stores the shop's
    columns.
    """
    kept = await card_columns.choose_columns(session, caller, data.columns, clock.now())
    return Columns(list(kept))


@put("/card_columns/shop", opt=WRITES, responses=problems(*FOR_OWNERS, *WITH_JSON_BODY))
async def keep_shop_columns(caller: Caller, session: AsyncSession, data: ColumnsToKeep) -> Columns:
    """Store the shop's columns, for members who have not chosen their own."""
    kept = await card_columns.choose_columns(session, caller, data.columns, clock.now(), shop=True)
    return Columns(list(kept))


class Settled(msgspec.Struct):
    """The chosen product of the catalog; GET /api/quick_add/products returns the ids of
    products.
    """

    product_id: int


@get("/cards/{card_id:int}/match", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def card_match(
    caller: Caller,
    database: Database,
    settings: Settings,
    card_id: int,
) -> MatchBody:
    """The product that the card was matched to, and whether their sets, names, numbers and so on
    agree.
    """
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        return await read_match(reading, caller, card_id)


@post(
    "/cards/{card_id:int}/match",
    status_code=200,
    opt=WRITES,
    responses=problems(
        *FOR_OWNERS,
        *WITH_JSON_BODY,
        errors.NotFound,
        errors.NeedsReview,
        errors.RefusedByGrant,
    ),
    dependencies={"writer": WRITING_SEEN["writer"]},
)
async def settle_card_match(writer: Writer, card_id: int, data: Settled) -> MatchBody:
    """Bind the card's SKU to a product of the catalog. Later imports keep the choice."""
    await writes.settle_match(writer, card_id, data.product_id)
    return await match_in(writer.session, writer.caller, card_id)


router = Router(
    path="",
    route_handlers=[
        read_saved_searches,
        save_search,
        change_search,
        delete_search,
        read_columns,
        keep_columns,
        keep_shop_columns,
        card_match,
        settle_card_match,
    ],
    # These operations may wait for another write to the same searches, columns or match. The
    # bounded session limits that wait.
    dependencies={"session": Provide(provide_bounded_session)},
    tags=["cards"],
)
