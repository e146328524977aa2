"""Reads a seller's logged cycles, as pages or one at a time, and their screenshots."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.sync.models import DebugScreenshot, SyncCycle
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, numbered, row_as, rows_as
from cardsync.platform.kit.row_pages import Numbered, Paging
from cardsync.platform.storage import ObjectMissing, Store


async def page_of_cycles(source: Source, caller: Caller, paging: Paging) -> Numbered[SyncCycle]:
    """Return a page of cycles. Raises OwnerRequired."""
    caller.must_be_owner()
    return await numbered(source, SyncCycle, caller.seller_id, paging)


async def newest_cycles(source: Source, caller: Caller, most: int) -> list[SyncCycle]:
    """Return the newest cycles without counting all. Raises OwnerRequired."""
    caller.must_be_owner()
    tail = "ORDER BY id DESC LIMIT :most"
    return await rows_as(source, SyncCycle, caller.seller_id, tail, most=most)


async def cycle(source: Source, caller: Caller, cycle_id: int) -> SyncCycle:
    """Return one cycle. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    row = await row_as(source, SyncCycle, caller.seller_id, "AND id = :id", id=cycle_id)
    if row is None:
        raise errors.NotFound(f"there is no sync {cycle_id}")
    return row


async def screenshots_of(
    source: Source, caller: Caller, cycle_ids: Sequence[int]
) -> dict[int, list[DebugScreenshot]]:
    """Return the cycles' screenshots that still exist, oldest first."""
    tail = "AND cycle_id = ANY (CAST(:cycles AS bigint[])) ORDER BY id"
    values = {"cycles": list(cycle_ids)}
    found: dict[int, list[DebugScreenshot]] = {}
    for row in await rows_as(source, DebugScreenshot, caller.seller_id, tail, **values):
        found.setdefault(row.cycle_id, []).append(row)
    return found


async def picture(session: AsyncSession, caller: Caller, store: Store, screenshot_id: int) -> bytes:
    """Return a screenshot's PNG. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    key = await session.scalar(
        select(DebugScreenshot.storage_key).where(
            DebugScreenshot.seller_id == caller.seller_id, DebugScreenshot.id == screenshot_id
        )
    )
    try:
        if key is not None:
            return await store.read(key)
    except ObjectMissing:
        pass
    raise errors.NotFound(f"there is no screenshot {screenshot_id}")
