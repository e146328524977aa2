"""HTTP routes of cycle counts, for members who are signed in: boxes to count, and counts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, post
from litestar.params import Parameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import GivenBox, Slot, checked_box
from cardsync.stock.errors import CountNotOpen, CountOpen
from cardsync.stock.limits import COUNTED_AT_ONCE, COUNTS_SUGGESTED, PLACES_PER_PAGE_MOST
from cardsync.stock.shelving import count_reads, cycle_counts
from cardsync.stock.shelving.count_schemas import (
    CountHistory,
    CountInFull,
    CountShown,
    SuggestedCounts,
    count_history,
)
from cardsync.web.request import BEHIND_A_KEY, FOR_MEMBERS, WITH_JSON_BODY, problems

Seen = Annotated[int, msgspec.Meta(ge=0, le=limits.SHELVED_QUANTITY)]
CardId = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Page = Annotated[int, Parameter(ge=1, le=limits.PAGE_MOST)]
PerPage = Annotated[int, Parameter(ge=1, le=PLACES_PER_PAGE_MOST)]


class BeginCount(msgspec.Struct):
    """The box or slot to count. Without `slot`, the whole box is counted."""

    box: GivenBox
    slot: Slot | None = None


class SeenCard(msgspec.Struct):
    """The number of copies of a card that a member counted in a slot."""

    card_id: CardId
    slot: Slot
    quantity: Seen


class SeenCards(msgspec.Struct):
    cards: Annotated[list[SeenCard], msgspec.Meta(min_length=1, max_length=COUNTED_AT_ONCE)]
    """The cards that a member counted"""


class SettleCount(msgspec.Struct):
    """The end of a count. Lines that nobody counted keep their quantity, or count as 0 copies with
    `missing`.
    """

    unseen: cycle_counts.Unseen = "keep"
    """keep or missing: the treatment of lines that nobody counted"""


READS = problems(*BEHIND_A_KEY, errors.SessionRequired, errors.InvalidPayload)
READS_ONE = problems(
    *BEHIND_A_KEY,
    errors.SessionRequired,
    errors.InvalidPayload,
    errors.NotFound,
)
ON_ONE = (*FOR_MEMBERS, errors.NotFound, CountNotOpen)


@get("/counts/suggested", responses=READS)
async def suggest_counts(
    caller: Caller,
    database: Database,
    settings: Settings,
    limit: Annotated[int, Parameter(ge=1, le=COUNTS_SUGGESTED)] = 20,
) -> SuggestedCounts:
    """The boxes that are most urgent to count: by value, time since the last count, and copies that
    left the marketplace without a sale.
    """
    async with database.bounded(caller.seller_id, settings.read_seconds, snapshot=True) as session:
        return await count_reads.suggested(session, caller, clock.now(), limit)


@get("/counts", responses=READS)
async def list_counts(
    caller: Caller,
    session: AsyncSession,
    before: Annotated[int | None, Parameter(ge=1, le=limits.LARGEST_ID)] = None,
    box: str | None = None,
) -> CountHistory:
    """The counts, newest first; with `box`, only the counts of that box."""
    found = await count_reads.history(
        session, caller, before, None if box is None else checked_box(box)
    )
    return count_history(found)


@post("/counts", responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY, CountOpen))
async def begin_count(caller: Caller, session: AsyncSession, data: BeginCount) -> CountShown:
    """Begin a count. The expected copies are stored with it, and later changes do not alter
    them.
    """
    box, now = checked_box(data.box), clock.now()
    row = await cycle_counts.begin(session, caller, box, data.slot, now)
    return struct_of(CountShown, row)


@get("/counts/{count_id:int}", responses=READS_ONE)
async def read_count(
    caller: Caller,
    session: AsyncSession,
    count_id: int,
    page: Page = 1,
    per_page: PerPage = limits.PLACES_PER_PAGE,
) -> CountInFull:
    """One count, with a page of its cards in the order of slots."""
    return await count_reads.in_full(session, caller, count_id, Paging(page, per_page))


@post(
    "/counts/{count_id:int}/seen",
    status_code=200,
    responses=problems(*ON_ONE, *WITH_JSON_BODY),
)
async def see_cards(
    caller: Caller,
    session: AsyncSession,
    count_id: int,
    data: SeenCards,
) -> CountShown:
    """Record the copies that a member counted in the slots. Repeating the request changes
    nothing.
    """
    sights = [cycle_counts.Sight(card.card_id, card.slot, card.quantity) for card in data.cards]
    return struct_of(
        CountShown, await cycle_counts.see(session, caller, count_id, sights, clock.now())
    )


@post(
    "/counts/{count_id:int}/settle",
    status_code=200,
    responses=problems(*ON_ONE, *WITH_JSON_BODY),
)
async def settle_count(
    caller: Caller,
    session: AsyncSession,
    count_id: int,
    data: SettleCount | None = None,
) -> CountShown:
    """Correct the places to the counted copies, and end the count. The cards' quantities do not
    change.
    """
    unseen = data.unseen if data else "keep"
    return struct_of(
        CountShown, await cycle_counts.settle(session, caller, count_id, unseen, clock.now())
    )


@post("/counts/{count_id:int}/cancel", status_code=200, responses=problems(*ON_ONE))
async def cancel_count(caller: Caller, session: AsyncSession, count_id: int) -> CountShown:
    """End a count without correcting places."""
    return struct_of(CountShown, await cycle_counts.cancel(session, caller, count_id, clock.now()))


router = Router(
    path="",
    route_handlers=[
        suggest_counts,
        list_counts,
        begin_count,
        read_count,
        see_cards,
        settle_count,
        cancel_count,
    ],
    tags=["shelves"],
)
