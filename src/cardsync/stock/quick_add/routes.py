"""HTTP routes of quick-add: type-ahead, drafts, publishing, and settling entries that were sent to
the marketplace and never answered.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post
from litestar.params import QueryParameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.printings import PRINTINGS
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.stock.errors import ListingInHand, NotADraft, NotPending
from cardsync.stock.quick_add import drafts, settle
from cardsync.stock.quick_add.checked_entry import Changes, Id, Quantity, Wanted
from cardsync.stock.quick_add.models import Status
from cardsync.stock.quick_add.schemas import (
    Entries,
    EntryPage,
    PendingEntries,
    Products,
    Published,
    QuickAddEntry,
)
from cardsync.stock.quick_add.type_ahead import products_like
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_EITHER,
    FOR_MEMBERS,
    FOR_OWNERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
)


class Drafts(msgspec.Struct):
    entries: Annotated[list[Wanted], msgspec.Meta(min_length=1, max_length=limits.QUICK_ADD_BATCH)]
    """The drafts"""


class ToPublish(msgspec.Struct):
    ids: Annotated[list[Id], msgspec.Meta(min_length=1, max_length=limits.QUICK_ADD_BATCH)]


class Settlement(msgspec.Struct):
    """The outcome of a pending entry. `quantity` is the number of its copies that the marketplace
    lists, by default all.
    """

    listed: bool
    """Whether the marketplace lists the entry"""
    quantity: Quantity | None = None


@get("/quick_add/products", responses=problems(*BEHIND_A_KEY, errors.InvalidPayload))
async def type_ahead(
    caller: Caller,
    session: AsyncSession,
    typed: Annotated[str, QueryParameter(name="q", max_length=limits.SEARCHED_CHARACTERS)],
    game: str | None = None,
    limit: Annotated[int, QueryParameter(ge=1, le=limits.TYPE_AHEAD_MOST)] = limits.TYPE_AHEAD,
) -> Products:
    """Products of the catalog whose words and numbers begin with the typed words, the best
    first.
    """
    found = await products_like(session, caller, typed, game, limit)
    return Products(found)


@post(
    "/quick_add",
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, errors.ListFull, errors.StockPromotedReload),
)
async def add_drafts(caller: Caller, database: Database, data: Drafts) -> Entries:
    """Store drafts of listings: the whole batch or, if an entry is invalid, none. Drafts are not
    sent to the marketplace.
    """
    made = await drafts.draft(database, caller, data.entries, clock.now())
    new = sum(entry.printing not in PRINTINGS for entry in made)
    return Entries([struct_of(QuickAddEntry, entry) for entry in made], new_printing=new)


@get("/quick_add", responses=problems(*BEHIND_A_KEY, errors.InvalidPayload))
async def list_entries(
    caller: Caller,
    session: AsyncSession,
    status: Status | None = None,
    page: Annotated[int, QueryParameter(ge=1, le=limits.PAGE_MOST)] = 1,
    per_page: Annotated[int, QueryParameter(ge=1, le=limits.CARDS_PER_PAGE_MOST)] = (
        limits.CARDS_PER_PAGE
    ),
) -> EntryPage:
    """Entries of quick-add, newest first."""
    found = await drafts.entries(session, caller, status, Paging(page, per_page))
    return EntryPage([struct_of(QuickAddEntry, row) for row in found.rows], *found.numbers)


@patch(
    "/quick_add/{entry_id:int}",
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, errors.NotFound, NotADraft),
)
async def change_draft(
    caller: Caller,
    session: AsyncSession,
    entry_id: int,
    data: Changes,
) -> QuickAddEntry:
    """Change a draft or a rejected entry, which becomes a draft again."""
    return struct_of(
        QuickAddEntry, await drafts.change(session, caller, entry_id, data, clock.now())
    )


@delete(
    "/quick_add/{entry_id:int}",
    status_code=200,
    responses=problems(*FOR_EITHER, errors.NotFound, NotADraft),
)
async def delete_entry(caller: Caller, session: AsyncSession, entry_id: int) -> Deleted:
    """Delete a draft or a rejected entry. The owner can also delete a published entry that has not
    been in a file yet.
    """
    await drafts.delete(session, caller, entry_id, clock.now())
    return Deleted(deleted=True)


@post(
    "/quick_add/publish",
    status_code=200,
    responses=problems(
        *FOR_OWNERS,
        *WITH_JSON_BODY,
        errors.NotFound,
        NotADraft,
        errors.NeedsReview,
        errors.RefusedByGrant,
    ),
    dependencies=WRITING_SEEN,
)
async def publish_drafts(writer: Writer, data: ToPublish) -> Published:
    """Publish all of the drafts or, if one can't be published, none. The export then contains them,
    and the agent gets a task.
    """
    entries, task_id = await writes.publish_listings(writer, data.ids)
    return Published([struct_of(QuickAddEntry, entry) for entry in entries], task_id)


@get("/quick_add/pending", responses=problems(*BEHIND_A_KEY, errors.SessionRequired))
async def list_pending(caller: Caller, session: AsyncSession) -> PendingEntries:
    """The entries that were sent to the marketplace and never answered, each with the listing of
    its card in the newest import.
    """
    return PendingEntries(await settle.pending(session, caller, clock.now()))


@post(
    "/quick_add/{entry_id:int}/settle",
    status_code=200,
    responses=problems(
        *FOR_MEMBERS,
        *WITH_JSON_BODY,
        errors.OwnerRequired,
        errors.NotFound,
        NotPending,
        ListingInHand,
    ),
)
async def settle_entry(
    caller: Caller,
    session: AsyncSession,
    entry_id: int,
    data: Settlement,
) -> QuickAddEntry:
    """Settle a pending entry as listed or not listed.

    If only a part of its copies is listed, the other copies become a draft again. An entry that is
    not listed is served again, at the earliest 30 minutes after its file.
    """
    return struct_of(
        QuickAddEntry,
        await settle.settle(session, caller, entry_id, data.listed, data.quantity, clock.now()),
    )


router = Router(
    path="",
    route_handlers=[
        type_ahead, add_drafts, list_entries, change_draft, delete_entry, publish_drafts,
    ],
    tags=["quick-add"],
)  # fmt: skip
recovery = Router(path="", route_handlers=[list_pending, settle_entry], tags=["quick-add"])
