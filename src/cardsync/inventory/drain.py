"""Working off a seller's accepted inventory uploads, one per job, in order of acceptance.

A job may come twice, late or never: it takes the price-mutation lease or leaves, does the oldest
open upload or nothing, and queues the next nudge itself, so that one seller's many uploads don't
keep others waiting.
"""

from __future__ import annotations

import contextlib

import procrastinate
import psycopg
import structlog
from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from cardsync import clock, errors
from cardsync.inventory import finish, importer
from cardsync.seller_state import state as sync_state
from cardsync.seller_state.lease import renewing
from cardsync.seller_state.state import CancelRequested, Lease, LeaseLost
from cardsync.sync import cancel
from cardsync.work.jobs import Work, enqueue, jobs, work_of
from cardsync.work.setbacks import GiveUp, PutBack, TryAgain
from cardsync.work.streams import (
    MAX_STARTS,
    MAX_STARTS_JUDGED,
    Due,
    due_of,
    forget,
    oldest_open,
    rest,
    setback,
)
from cardsync.work.uploads import Upload

log = structlog.get_logger(__name__)

STREAM = "inventory"


@jobs.task(name="inventory.drain", queue="imports", pass_context=True)
async def drain_inventory(context: procrastinate.JobContext, seller_id: int) -> None:
    work = work_of(context)
    if await work_off_one(work, seller_id):
        async with work.database.tenant(seller_id) as session:
            await enqueue(session, drain_inventory, seller_id=seller_id)


async def work_off_one(work: Work, seller_id: int) -> bool:
    """Import the oldest open upload.

    True if there may be more to do, False if there is nothing or somebody else is at it.
    """
    async with work.database.tenant(seller_id) as session:
        due = await due_of(session, seller_id, STREAM)
        # Before anything is taken up: an import that was cancelled is not gone on with.
        await cancel.end_left(session, seller_id, clock.now())
        upload = await oldest_open(session, seller_id, STREAM)
    if upload is None:
        await _nothing_left(work, seller_id, due)
        return False
    if due is not None and due.rests(upload.id, clock.now()):
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
        return await _import(work, lease, upload, due)


async def _nothing_left(work: Work, seller_id: int, due: Due | None) -> None:
    """Finish what a worker left that was killed after its last upload, then take the mark away."""
    async with work.database.tenant(seller_id) as session:
        state = await sync_state.locked(session, seller_id)
        left = state.lease_holder == "sync" or state.export_fingerprint is None
        lease = (
            await sync_state.take_lease(
                session, seller_id, "sync", clock.now(), work.settings.lease_seconds
            )
            if left
            else None
        )
    if lease is not None:
        with contextlib.suppress(LeaseLost):
            await finish.let_go(work, lease)
    elif left:
        return  # somebody is at it, or its lease runs out: the sweep comes back
    async with work.database.tenant(seller_id) as session:
        await forget(session, seller_id, STREAM, due)


async def _import(work: Work, lease: Lease, upload: Upload, due: Due | None) -> bool:
    """Import one upload and settle how it ended.

    False if it has to wait for something outside: the sweep comes back to it.
    """
    bound = log.bind(seller_id=upload.seller_id, upload_id=upload.id)
    try:
        most = MAX_STARTS if upload.verdict is None else MAX_STARTS_JUDGED
        if upload.attempts > most:
            raise errors.CsvProcessingFailed(f"given up after {most} attempts")
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
        match setback(e, upload.seller_id, STREAM, upload.id, due, upload.failures):
            case PutBack() as back:
                await _put_back(work, lease, upload, upload.failures, back)
                return False
            case TryAgain(failures):
                await _put_back(work, lease, upload, failures)
            case GiveUp(why=why):
                told = why or "the file could not be processed"
                with contextlib.suppress(LeaseLost):
                    await finish.fail(work, lease, upload, "csv_processing_failed", told)
    return True


async def _put_back(
    work: Work, lease: Lease, upload: Upload, failures: int, back: PutBack | None = None
) -> None:
    """Leave the upload open for another try; if even that can't be written, the lease runs out by
    itself.
    """
    with contextlib.suppress(SQLAlchemyError, psycopg.Error, OSError):
        async with work.database.tenant(upload.seller_id) as session:
            await sync_state.release_lease(session, lease)
            await session.execute(
                update(Upload)
                .where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
                .values(attempts=upload.attempts - 1, failures=failures)
            )
            if back is not None:
                await rest(session, upload.seller_id, STREAM, upload.id, back)
