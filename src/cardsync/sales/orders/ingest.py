"""Applies a seller's order-data uploads in order of acceptance, one per job, each in one
transaction. `platform/work/runner.py` runs this stream of uploads.

A worker locks the row of the upload that it applies. Another worker that finds the row locked
stops. The lock of a killed worker ends with its last statement. So no upload is applied before an
earlier upload, and an upload whose worker was killed is applied again.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial

import procrastinate
import structlog
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock, errors, limits
from cardsync.platform.database.notify import notify
from cardsync.platform.database.session import Database
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.settings import Settings
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import ORDERS, Work, jobs
from cardsync.platform.work.metrics import UPLOAD_SECONDS
from cardsync.platform.work.metrics import UPLOADS as UPLOADS_ENDED
from cardsync.platform.work.models import Upload
from cardsync.platform.work.piece import LeaseLost, Piece
from cardsync.platform.work.streams import OPEN, begin_upload, oldest_open
from cardsync.sales.orders import rows
from cardsync.sales.orders.apply import Applied, apply, as_indexed
from cardsync.sales.orders.pull_sessions import PULLS
from cardsync.web import bodies

log = structlog.get_logger(__name__)


@jobs.task(name="orders.drain", queue="imports", pass_context=True)
async def drain_orders(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(UPLOADS, drain_orders, context, seller_id)


class _ByItsRow:
    """Locks the row of an upload, for `platform/work/runner.py`. Each transaction of the work locks
    the row again.
    """

    async def take(self, session: AsyncSession, piece: Piece, settings: Settings) -> Piece | None:
        return await _mine(session, piece, wait=False)

    async def release(self, session: AsyncSession, hold: Piece) -> None:
        """Do nothing: the lock ended with the transaction that took it."""

    def kept(self, database: Database, hold: Piece) -> AbstractAsyncContextManager[None]:
        return nullcontext()


async def _mine(session: AsyncSession, upload: Piece, *, wait: bool = True) -> Upload | None:
    """Return the upload with its row locked; None if it is no longer open, or if `wait` is false
    and another worker has locked the row.

    A worker that has read the body waits. Otherwise, workers that lock the row for a moment to
    check whether it is free could together keep every writer from beginning.
    """
    statement = (
        select(Upload)
        .where(
            Upload.seller_id == upload.seller_id,
            Upload.id == upload.id,
            Upload.state.in_(OPEN),
        )
        .with_for_update(skip_locked=not wait)
    )
    return (
        await session.execute(statement.execution_options(populate_existing=True))
    ).scalar_one_or_none()


async def _apply(work: Work, hold: Piece, upload: Upload) -> None:
    body = await work.store.read(upload.storage_key)
    read = await asyncio.to_thread(_read, body, upload.kind)
    now = clock.now()
    applied = await _write(work.database, upload, read, now)
    if applied is None:
        raise LeaseLost
    UPLOADS_ENDED.labels("done").inc()
    UPLOAD_SECONDS.observe((now - upload.received_at).total_seconds())
    log.info(
        "orders_applied", seller_id=upload.seller_id, upload_id=upload.id, kind=upload.kind, rows=read.count, written=applied.written,
    )  # fmt: skip


def _read(body: bytes, kind: str) -> rows.Rows:
    read = rows.read(bodies.plain(body, limits.BODY_INFLATED_BYTES), kind)
    return replace(read, frame=as_indexed(read.frame))


async def _write(
    database: Database,
    upload: Upload,
    read: rows.Rows,
    now: datetime,
) -> Applied | None:
    async with database.tenant(upload.seller_id) as session:
        mine = await _mine(session, upload)
        if mine is None:
            return None
        applied = await apply(session, upload.seller_id, upload.kind, read, now)
        mine.state, mine.finished_at, mine.report = "done", now, _report(read, applied)
        if applied.written:
            # Open pages of pulls refresh, because an order on them may have changed.
            await notify(session, PULLS, f"{mine.seller_id}:")
            if upload.kind != "shipping":
                await mark(session, upload.seller_id, Figure.SALES_SUMS, Figure.ORDER_SEARCH)
    return applied


def _report(read: rows.Rows, applied: Applied) -> dict[str, object]:
    return {
        "rows": read.count,
        "applied": read.count - read.duplicates - applied.skipped,
        "skipped": applied.skipped,
        "duplicates": read.duplicates,
        "rejected": read.rejected,
        "rejected_count": read.rejected_count,
        "written": applied.written,
    }


async def _fail(
    work: Work,
    hold: Piece,
    upload: Upload,
    code: str | None,
    why: str,
) -> None:
    """Mark the upload as failed; the stream continues with the next upload."""
    async with work.database.tenant(upload.seller_id) as session:
        mine = await _mine(session, upload)
        if mine is None:
            raise LeaseLost
        mine.state, mine.finished_at = "failed", clock.now()
        mine.error_code = code or "processing_failed"
        mine.error_message = why or "the upload could not be processed"
    UPLOADS_ENDED.labels("failed").inc()


UPLOADS = runner.Stream[Upload, Piece](
    ORDERS,
    _ByItsRow(),
    oldest=partial(oldest_open, stream=ORDERS),
    work=_apply,
    fail=_fail,
    begin=begin_upload,
)
work_off_one = partial(runner.work_off_one, UPLOADS)


async def work_off_pending(work: Work, seller_id: int) -> None:
    """Apply all uploads that were accepted so far, or wait for other workers to apply them.
    Raises ServiceUnavailable if that takes too long.
    """
    async with work.database.tenant(seller_id) as session:
        newest = await session.scalar(
            select(func.max(Upload.id)).where(
                Upload.seller_id == seller_id,
                Upload.stream == ORDERS,
                Upload.state.in_(OPEN),
            )
        )
    if newest is None:
        return
    try:
        async with asyncio.timeout(work.settings.feedback_wait_seconds):
            while await _is_pending(work, seller_id, newest):
                if not await work_off_one(work, seller_id, counted=False):
                    await asyncio.sleep(0.05)
    except TimeoutError:
        raise errors.ServiceUnavailable(
            "earlier order uploads are still being applied; try again"
        ) from None


async def _is_pending(work: Work, seller_id: int, newest: int) -> bool:
    async with work.database.tenant(seller_id) as session:
        oldest = await oldest_open(session, seller_id, ORDERS)
        return oldest is not None and oldest.id <= newest
