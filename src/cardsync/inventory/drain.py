"""Working off a seller's accepted inventory uploads, one per job, in order of acceptance.

A job may come twice, late or never: it takes the price-mutation lease or leaves, does the oldest open upload or nothing, and queues
the next nudge itself, so that one seller's many uploads don't keep others waiting.
"""

from __future__ import annotations

import contextlib
from datetime import datetime

import procrastinate
import psycopg
import structlog
from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from cardsync import clock, errors
from cardsync.accepted import MAX_FAILURES, MAX_STARTS, due_since, forget, is_away, oldest_open
from cardsync.inventory import finish, importer
from cardsync.inventory.models import Upload
from cardsync.jobs import Work, enqueue, jobs, work_of
from cardsync.sync import cancel
from cardsync.sync import state as sync_state
from cardsync.sync.lease import renewing
from cardsync.sync.state import CancelRequested, Lease, LeaseLost

log = structlog.get_logger(__name__)

STREAM = "inventory"


@jobs.task(name="inventory.drain", queue="imports", pass_context=True)
async def drain_inventory(context: procrastinate.JobContext, seller_id: int) -> None:
    work = work_of(context)
    if await work_off_one(work, seller_id):
        async with work.database.tenant(seller_id) as session:
            await enqueue(session, drain_inventory, seller_id=seller_id)


async def work_off_one(work: Work, seller_id: int) -> bool:
    """Import the oldest open upload. True if there may be more to do, False if there is nothing or somebody else is at it."""
    async with work.database.tenant(seller_id) as session:
        due_at = await due_since(session, seller_id, STREAM)
        # Before anything is taken up: an import that was cancelled is not gone on with.
        await cancel.end_left(session, seller_id, clock.now())
        upload = await oldest_open(session, seller_id, STREAM)
    if upload is None:
        await _nothing_left(work, seller_id, due_at)
        return False
    async with work.database.tenant(seller_id) as session:
        seconds = work.settings.lease_seconds
        lease = await sync_state.take_lease(session, seller_id, "sync", clock.now(), seconds)
        if lease is None:
            return False
        upload = await oldest_open(session, seller_id, STREAM)
        if upload is None:
            await sync_state.release_lease(session, lease)
            return True
        upload.state, upload.begun_at = "processing", upload.begun_at or clock.now()
        upload.attempts += 1
    async with renewing(work.database, lease):
        return await _import(work, lease, upload)


async def _nothing_left(work: Work, seller_id: int, due_at: datetime | None) -> None:
    """Finish what a worker left that was killed after its last upload, then take the mark away."""
    async with work.database.tenant(seller_id) as session:
        state = await sync_state.locked(session, seller_id)
        left = state.lease_holder == "sync" or state.export_fingerprint is None
        lease = (
            await sync_state.take_lease(session, seller_id, "sync", clock.now(), work.settings.lease_seconds)
            if left
            else None
        )
    if lease is not None:
        with contextlib.suppress(LeaseLost):
            await finish.let_go(work, lease)
    elif left:
        return  # somebody is at it, or its lease runs out: the sweep comes back
    async with work.database.tenant(seller_id) as session:
        await forget(session, seller_id, STREAM, due_at)


async def _import(work: Work, lease: Lease, upload: Upload) -> bool:
    """Import one upload and settle how it ended. False if it has to wait for something outside: the sweep comes back to it."""
    bound = log.bind(seller_id=upload.seller_id, upload_id=upload.id)
    try:
        if upload.attempts > MAX_STARTS and upload.verdict is None:
            raise errors.CsvProcessingFailed(f"given up after {MAX_STARTS} attempts")
        await importer.import_upload(work, lease, upload)
    except errors.Problem as problem:
        bound.info("upload_failed", code=problem.code)
        with contextlib.suppress(LeaseLost):
            await finish.fail(work, lease, upload, problem.code, str(problem))
    except CancelRequested:
        bound.info("upload_cancelled")
        with contextlib.suppress(LeaseLost):
            await finish.cancel(work, lease)
    except LeaseLost:
        bound.warning("lease_lost")
    except Exception as e:
        if is_away(e):
            # The database or the object store went away: not the file's fault, whatever it takes.
            bound.warning("upload_waits", kind=type(e).__name__)
            await _put_back(work, lease, upload)
            return False
        bound.exception("upload_crashed", failures=upload.failures + 1)
        if upload.failures + 1 >= MAX_FAILURES:
            with contextlib.suppress(LeaseLost):
                await finish.fail(work, lease, upload, "csv_processing_failed", "the file could not be processed")
        else:
            await _put_back(work, lease, upload, failures=upload.failures + 1)
    return True


async def _put_back(work: Work, lease: Lease, upload: Upload, *, failures: int | None = None) -> None:
    """Leave the upload open for another try; if even that can't be written, the lease runs out by itself."""
    with contextlib.suppress(SQLAlchemyError, psycopg.Error, OSError):
        async with work.database.tenant(upload.seller_id) as session:
            await sync_state.release_lease(session, lease)
            await session.execute(
                update(Upload)
                .where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
                .values(attempts=upload.attempts - 1, failures=upload.failures if failures is None else failures)
            )
