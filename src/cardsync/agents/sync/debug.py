"""Stores debug screenshots, an object and a row each, and deletes both when they are old.

The object is written before its row; an object without a row is deleted by its age
(processes/retention.py). Only the seller's signed-in members can read screenshots.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
import procrastinate
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.state import locked, refresh
from cardsync.agents.sync.cycle_logs import CycleId, place_cycle
from cardsync.agents.sync.models import DebugScreenshot, SyncCycle
from cardsync.agents.sync.screenshots import BadScreenshot, read_screenshot
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.work.jobs import jobs, mark_due_by, work_of

STREAM = "screenshots"


class DebugScreenshotBody(msgspec.Struct, kw_only=True):
    screenshot: str
    sync_cycle_id: CycleId | None = None
    step_name: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    page_url: Annotated[str, msgspec.Meta(max_length=8_000)] | None = None
    captured_at: str | None = None


async def keep_screenshot(
    database: Database,
    caller: Caller,
    store: Store,
    settings: Settings,
    body: DebugScreenshotBody,
) -> None:
    """Store a screenshot. Raises PayloadTooLarge, InvalidPayload, or NotFound if the request names
    no cycle and the seller has none.
    """
    seller_id = caller.seller_id
    try:
        png = await asyncio.to_thread(read_screenshot, body.screenshot)
    except BadScreenshot as e:
        raise errors.InvalidPayload(f"screenshot is not a PNG in Base64: {e}") from e
    if body.sync_cycle_id is None:
        async with database.tenant(seller_id) as session:
            await _newest_cycle(session, seller_id)
    key = f"debug/u{seller_id}/{uuid.uuid4()}.png"
    with store.spool() as (path, file):
        await asyncio.to_thread(file.write, png)
        file.flush()
        await store.write(key, path)
    try:
        async with database.tenant(seller_id) as session:
            await _keep_row(session, settings, seller_id, body, key, len(png))
    except Exception:
        await store.delete(key)
        raise


async def _keep_row(
    session: AsyncSession,
    settings: Settings,
    seller_id: int,
    body: DebugScreenshotBody,
    key: str,
    size: int,
) -> None:
    now = clock.now()
    state = await locked(session, seller_id)
    refresh(state, now)
    await place_cycle(session, seller_id, body.sync_cycle_id, state.lock_trigger, now)
    screenshot = DebugScreenshot(
        seller_id=seller_id,
        cycle_id=await _newest_cycle(session, seller_id, body.sync_cycle_id),
        step_name=body.step_name,
        page_url=body.page_url,
        storage_key=key,
        size=size,
        captured_at=clock.read_moment(body.captured_at),
        received_at=now,
    )
    session.add(screenshot)
    await mark_due_by(session, seller_id, STREAM, now + _kept(settings))


async def _newest_cycle(
    session: AsyncSession,
    seller_id: int,
    sync_cycle_id: str | None = None,
) -> int:
    """Return the ID of the cycle with the agent's `sync_cycle_id`; if that is None, the ID of the
    newest cycle.

    The largest ID is the newest: the start that an agent reports may be in the future.
    """
    query = select(func.max(SyncCycle.id)).where(SyncCycle.seller_id == seller_id)
    if sync_cycle_id is not None:
        query = query.where(SyncCycle.sync_cycle_id == sync_cycle_id)
    if (found := await session.scalar(query)) is None:
        raise errors.NotFound(
            "no cycle was logged yet that the screenshot could belong to; send a sync_cycle_id"
        )
    return found


def _kept(settings: Settings) -> timedelta:
    return timedelta(days=settings.screenshot_retention_days)


@jobs.task(name="sync.drop_screenshots", queue="housekeeping", pass_context=True)
async def drop_screenshots(context: procrastinate.JobContext, seller_id: int) -> None:
    """Delete the seller's old rows and schedule the next deletion.

    The objects are deleted by their own age.
    """
    work = work_of(context)
    async with work.database.tenant(seller_id) as session:
        await drop_old_rows(session, seller_id, clock.now(), _kept(work.settings))


async def drop_old_rows(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    kept: timedelta,
) -> None:
    # A screenshot that arrives in the meantime waits for this lock, so that the deletion below does
    # not remove its due time.
    await session.execute(
        text("SELECT FROM sync_state WHERE seller_id = :id FOR UPDATE"), {"id": seller_id}
    )
    await session.execute(
        text("DELETE FROM debug_screenshot WHERE seller_id = :id AND received_at <= :before"),
        {"id": seller_id, "before": now - kept},
    )
    oldest = await session.scalar(
        select(func.min(DebugScreenshot.received_at)).where(DebugScreenshot.seller_id == seller_id)
    )
    await session.execute(
        text("DELETE FROM work_due WHERE seller_id = :id AND stream = :stream"),
        {"id": seller_id, "stream": STREAM},
    )
    if oldest is not None:
        await mark_due_by(session, seller_id, STREAM, oldest + kept)
