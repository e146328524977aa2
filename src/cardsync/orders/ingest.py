"""Working off a seller's order-data uploads, one per job, in order of acceptance: a small one in
one transaction, a large one in halves.

Who writes holds the upload's own row: whoever meets it locked leaves, and a killed worker lets go
of it when its last statement has ended. So no upload is applied before an earlier one, and what a
killed worker left of one is applied anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

import procrastinate
import psycopg
import structlog
from sqlalchemy import func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors, limits
from cardsync.database.session import Database
from cardsync.orders import halves, rows
from cardsync.orders.apply import Applied, apply, as_indexed
from cardsync.web import bodies
from cardsync.work.jobs import Work, enqueue, jobs, work_of
from cardsync.work.metrics import UPLOAD_SECONDS, UPLOADS
from cardsync.work.setbacks import GiveUp, PutBack, TryAgain
from cardsync.work.streams import MAX_STARTS, OPEN, Due, due_of, forget, oldest_open, rest, setback
from cardsync.work.uploads import Upload

log = structlog.get_logger(__name__)

STREAM = "orders"


@jobs.task(name="orders.drain", queue="imports", pass_context=True)
async def drain_orders(context: procrastinate.JobContext, seller_id: int) -> None:
    work = work_of(context)
    if await work_off_one(work, seller_id) == "done":
        async with work.database.tenant(seller_id) as session:
            await enqueue(session, drain_orders, seller_id=seller_id)


Outcome = Literal["done", "nothing", "busy"]


async def work_off_one(work: Work, seller_id: int, *, counted: bool = True) -> Outcome:
    """Apply the oldest open upload. `busy`: somebody else is at it, or a dependency is away.

    A start that is not `counted` may end unsaid.
    """
    async with work.database.tenant(seller_id) as session:
        due = await due_of(session, seller_id, STREAM)
        oldest = await oldest_open(session, seller_id, STREAM)
        if oldest is None:
            await forget(session, seller_id, STREAM, due)
            return "nothing"
        if due is not None and due.rests(oldest.id, clock.now()):
            return "busy"
        upload = await _mine(session, oldest)
        if upload is None:
            return "busy"
        upload.state, upload.begun_at = "processing", upload.begun_at or clock.now()
        upload.attempts += counted
    try:
        if upload.attempts > MAX_STARTS:
            raise errors.InvalidPayload(f"given up after {MAX_STARTS} attempts")
        return await _apply(work, upload)
    except errors.Problem as problem:
        return await _fail(work, upload, problem.code, str(problem))
    except Exception as e:
        return await _crashed(work, upload, e, due, counted)


async def _mine(session: AsyncSession, upload: Upload, *, wait: bool = False) -> Upload | None:
    """The upload with its row locked; None if it is no longer open, or another holds it and
    nobody is to `wait`.
    """
    statement = (
        select(Upload)
        .where(Upload.seller_id == upload.seller_id, Upload.id == upload.id, Upload.state.in_(OPEN))
        .with_for_update(skip_locked=not wait)
    )
    return (
        await session.execute(statement.execution_options(populate_existing=True))
    ).scalar_one_or_none()


async def hold_still(session: AsyncSession, seller_id: int) -> None:
    """Wait for the upload that is being applied, and keep others from beginning until this
    transaction ends.

    The caller has locked the seller's state row, so none is accepted meanwhile.
    """
    statement = select(Upload.id).where(
        Upload.seller_id == seller_id, Upload.stream == STREAM, Upload.state.in_(OPEN)
    )
    await session.execute(statement.order_by(Upload.id).with_for_update())


async def _apply(work: Work, upload: Upload) -> Outcome:
    body = await work.store.read(upload.storage_key)
    read = await asyncio.to_thread(_read, body, upload.kind)
    # What failed in halves is tried in one piece.
    cut = (
        read.frame.height > work.settings.orders_halved_over
        and upload.kind in halves.KINDS
        and not upload.failures
    )
    now = clock.now()
    applied = await (_write_in_halves if cut else _write)(work.database, upload, read, now)
    if applied is None:
        return "busy"
    UPLOADS.labels("done").inc()
    UPLOAD_SECONDS.observe((now - upload.received_at).total_seconds())
    log.info(
        "orders_applied", seller_id=upload.seller_id, upload_id=upload.id, kind=upload.kind, rows=read.count, written=applied.written
    )  # fmt: skip
    return "done"


def _read(body: bytes, kind: str) -> rows.Rows:
    read = rows.read(bodies.plain(body, limits.BODY_INFLATED_BYTES), kind)
    return replace(read, frame=as_indexed(read.frame))


async def _write(
    database: Database, upload: Upload, read: rows.Rows, now: datetime
) -> Applied | None:
    async with database.tenant(upload.seller_id) as session:
        mine = await _mine(session, upload)
        if mine is None:
            return None
        applied = await apply(session, upload.seller_id, upload.kind, read, now)
        mine.state, mine.finished_at, mine.report = "done", now, _report(read, applied)
    return applied


async def _write_in_halves(
    database: Database, upload: Upload, read: rows.Rows, now: datetime
) -> Applied | None:
    async with database.tenant(upload.seller_id) as session:
        claimed = await _mine(session, upload)
        if claimed is None:
            return None
        claimed.claims += 1
    applied = await halves.write(database, claimed, read, now)
    if applied is None:
        return None
    async with database.tenant(upload.seller_id) as session:
        mine = await _mine(session, upload, wait=True)
        if mine is None or mine.claims != claimed.claims:
            return None
        mine.state, mine.finished_at, mine.report = "done", now, _report(read, applied)
    return applied


def _report(read: rows.Rows, applied: Applied) -> dict[str, Any]:
    return {
        "rows": read.count,
        "applied": read.count - read.duplicates - applied.skipped,
        "skipped": applied.skipped,
        "duplicates": read.duplicates,
        "rejected": read.rejected,
        "rejected_count": read.rejected_count,
        "written": applied.written,
    }


async def _crashed(
    work: Work, upload: Upload, error: Exception, due: Due | None, counted: bool
) -> Outcome:
    match setback(error, upload.seller_id, STREAM, upload.id, due, upload.failures):
        case PutBack() as back:
            await _put_back(work, upload, back, attempts=upload.attempts - counted)
            return "busy"
        case TryAgain(failures):
            await _put_back(work, upload, failures=failures)
            return "done"
        case GiveUp(why=why):
            return await _fail(
                work, upload, "processing_failed", why or "the upload could not be processed"
            )


async def _put_back(work: Work, upload: Upload, back: PutBack | None = None, **counts: int) -> None:
    with contextlib.suppress(SQLAlchemyError, psycopg.Error, OSError):
        async with work.database.tenant(upload.seller_id) as session:
            await session.execute(
                update(Upload)
                .where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
                .values(**counts)
            )
            if back is not None:
                await rest(session, upload.seller_id, STREAM, upload.id, back)


async def _fail(work: Work, upload: Upload, code: str, message: str) -> Outcome:
    """Given up: the stream goes on behind it."""
    async with work.database.tenant(upload.seller_id) as session:
        mine = await _mine(session, upload)
        if mine is None:
            return "busy"
        mine.state, mine.finished_at = "failed", clock.now()
        mine.error_code, mine.error_message = code, message
    UPLOADS.labels("failed").inc()
    log.info("upload_failed", seller_id=upload.seller_id, upload_id=upload.id, code=code)
    return "done"


async def work_off_pending(work: Work, seller_id: int) -> None:
    """Everything accepted so far is applied when this returns.

    Raises ServiceUnavailable when that takes too long.
    """
    async with work.database.tenant(seller_id) as session:
        newest = await session.scalar(
            select(func.max(Upload.id)).where(
                Upload.seller_id == seller_id, Upload.stream == STREAM, Upload.state.in_(OPEN)
            )
        )
    if newest is None:
        return
    try:
        async with asyncio.timeout(work.settings.feedback_wait_seconds):
            while await _is_pending(work, seller_id, newest):
                if await work_off_one(work, seller_id, counted=False) == "busy":
                    await asyncio.sleep(0.05)
    except TimeoutError:
        raise errors.ServiceUnavailable(
            "earlier order uploads are still being applied; try again"
        ) from None


async def _is_pending(work: Work, seller_id: int, newest: int) -> bool:
    async with work.database.tenant(seller_id) as session:
        oldest = await oldest_open(session, seller_id, STREAM)
        return oldest is not None and oldest.id <= newest
