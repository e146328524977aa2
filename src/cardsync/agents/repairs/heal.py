"""Answers an agent whose selector finds no element: with a verified correction, with a proposal
from a snippet of the page, or with "gone".

The snippet is analyzed outside any transaction. Afterwards the correction is read again. If the
correction was disabled in the meantime, the answer is "gone"; if it was verified, the answer is
"cached".
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

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.limits import SELECTOR_CHARACTERS, SNIPPET_BYTES, STEP_NAME_CHARACTERS
from cardsync.agents.repairs.corrections import Step, keep, known
from cardsync.agents.repairs.models import WorkflowHeal
from cardsync.agents.repairs.propose_selector import Gone, LostElement, Proposal, propose
from cardsync.agents.repairs.schemas import (
    CachedRepair,
    Healed,
    NoRepair,
    ProposedRepair,
    RepairedSelector,
)
from cardsync.agents.sync.screenshots import BadScreenshot, read_screenshot
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.work.jobs import jobs, mark_due_by, work_of

STREAM = "repairs"
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=STEP_NAME_CHARACTERS)]
Selector = Annotated[str, msgspec.Meta(min_length=1, max_length=SELECTOR_CHARACTERS)]


class HealRequest(msgspec.Struct, kw_only=True):
    workflow: Name
    step_name: Name
    selector: Selector
    page_url: Annotated[str, msgspec.Meta(max_length=8_000)]
    dom_snippet: str
    screenshot: str | None = None


async def heal(
    database: Database,
    caller: Caller,
    store: Store,
    settings: Settings,
    request: HealRequest,
    now: datetime,
) -> Healed:
    """Return the answer to a request. Raises PayloadTooLarge or InvalidPayload."""
    size = len(request.dom_snippet.encode())
    if size > SNIPPET_BYTES:
        raise errors.PayloadTooLarge(
            f"dom_snippet is {size:,} bytes, at most {SNIPPET_BYTES:,} are taken;"
            " send the part of the page around the element"
        )
    picture = await _picture(request.screenshot)
    step = Step(request.workflow, request.step_name, request.selector)
    async with database.tenant(caller.seller_id) as session:
        before = await known(session, caller.seller_id, step, now)
    found: Proposal | Gone | None = None
    if before.cached is None:
        lost = LostElement(
            step.selector,
            step.step_name,
            before.seen,
            before.refused,
            step.workflow,
            request.page_url,
        )
        found = await asyncio.to_thread(propose, request.dom_snippet, lost)
    row = WorkflowHeal(
        seller_id=caller.seller_id,
        workflow=step.workflow,
        step_name=step.step_name,
        selector=step.selector,
        page_url=request.page_url,
        snippet_bytes=size,
        received_at=now,
    )
    if picture is not None:
        row.screenshot_key, row.screenshot_bytes = await _stored(store, caller, picture)
    try:
        async with database.tenant(caller.seller_id) as session:
            healed = await _recorded(session, caller, step, row, found, now)
            kept = timedelta(days=settings.screenshot_retention_days)
            await mark_due_by(session, caller.seller_id, STREAM, now + kept)
    except Exception:
        if row.screenshot_key:
            await store.delete(row.screenshot_key)
        raise
    return healed


async def _picture(encoded: str | None) -> bytes | None:
    if encoded is None:
        return None
    try:
        return await asyncio.to_thread(read_screenshot, encoded)
    except BadScreenshot as e:
        raise errors.InvalidPayload(f"screenshot is not a PNG in Base64: {e}") from e


async def _stored(store: Store, caller: Caller, picture: bytes) -> tuple[str, int]:
    key = f"debug/u{caller.seller_id}/{uuid.uuid4()}.png"
    with store.spool() as (path, file):
        await asyncio.to_thread(file.write, picture)
        file.flush()
        await store.write(key, path)
    return key, len(picture)


async def _recorded(
    session: AsyncSession,
    caller: Caller,
    step: Step,
    row: WorkflowHeal,
    found: Proposal | Gone | None,
    now: datetime,
) -> Healed:
    correction = None
    if isinstance(found, Proposal):
        correction = await keep(
            session,
            caller.seller_id,
            step,
            found.selector,
            found.confidence,
            found.seen,
            now,
            verified=False,
        )
        row.margin = found.margin
        if correction is None:
            row.reason = "the nearest element's selector has failed too often"
    elif isinstance(found, Gone):
        row.reason = found.reason
    else:
        # A failure may have disabled the correction in the meantime, so it is read again.
        correction = (await known(session, caller.seller_id, step, now)).cached
        row.reason = None if correction else "the correction has failed too often"
    cached = correction is not None and correction.state == "verified"
    row.outcome = "gone" if correction is None else "cached" if cached else "proposed"
    row.correction_id = correction.id if correction else None
    session.add(row)
    await session.flush()
    summary = f"heal {row.id}: {row.outcome}: {step.workflow}, {step.step_name}"
    note(session, caller, "repair.asked", summary, now)
    if correction is None:
        return NoRepair(row.id, row.reason or "")
    repaired = RepairedSelector(correction.id, correction.selector, correction.confidence)
    return CachedRepair(repaired) if cached else ProposedRepair(row.id, repaired)


@jobs.task(name="repairs.drop_heals", queue="housekeeping", pass_context=True)
async def drop_heals(context: procrastinate.JobContext, seller_id: int) -> None:
    """Delete the seller's old requests and schedule the next deletion.

    Corrections are kept. Screenshots expire by their own age.
    """
    work = work_of(context)
    kept = timedelta(days=work.settings.screenshot_retention_days)
    async with work.database.tenant(seller_id) as session:
        await drop_old_heals(session, seller_id, clock.now(), kept)


async def drop_old_heals(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    kept: timedelta,
) -> None:
    values = {"id": seller_id, "stream": STREAM, "before": now - kept}
    # A request that is recorded in the meantime waits for this lock, so that the deletion below
    # does not remove its due time.
    await session.execute(
        text("SELECT FROM work_due WHERE seller_id = :id AND stream = :stream FOR UPDATE"), values
    )
    await session.execute(
        text("DELETE FROM workflow_heal WHERE seller_id = :id AND received_at <= :before"), values
    )
    oldest = await session.scalar(
        select(func.min(WorkflowHeal.received_at)).where(WorkflowHeal.seller_id == seller_id)
    )
    await session.execute(
        text("DELETE FROM work_due WHERE seller_id = :id AND stream = :stream"), values
    )
    if oldest is not None:
        await mark_due_by(session, seller_id, STREAM, oldest + kept)
