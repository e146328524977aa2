"""Imports a seller's accepted inventory uploads in order of acceptance, one per job.
`platform/work/runner.py` runs this stream of uploads.

A job may run twice, late or never. It takes the seller's lease for price changes, or stops if
another worker has it. It imports the oldest open upload, and queues a new job for the next upload,
so that one seller's many uploads do not delay other sellers.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

import procrastinate
import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.lease import UnderLease
from cardsync.agents.seller_state.state import Lease
from cardsync.agents.sync import cancel
from cardsync.imports import finish, importer
from cardsync.platform import clock
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, jobs
from cardsync.platform.work.models import Upload
from cardsync.platform.work.piece import LeaseLost
from cardsync.platform.work.streams import begin_upload, oldest_open

log = structlog.get_logger(__name__)

STREAM = "inventory"
MAX_STARTS_JUDGED = 100
HOLDER = "sync"


@jobs.task(name="inventory.drain", queue="imports", pass_context=True)
async def drain_inventory(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(UPLOADS, drain_inventory, context, seller_id)


async def _before(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """End a cancelled import, so that no worker resumes it."""
    await cancel.end_left(session, seller_id, now)


def _most_starts(upload: Upload) -> int:
    """Return the maximum number of starts of an upload. An upload with a verdict may start more
    often, because each of these starts commits a part of the import, from which the next start
    continues, even if the machine restarts often.
    """
    return runner.MAX_STARTS if upload.verdict is None else MAX_STARTS_JUDGED


async def _fail(
    work: Work,
    lease: Lease,
    upload: Upload,
    code: str | None,
    why: str,
) -> None:
    await finish.fail(
        work,
        lease,
        upload,
        code or "csv_processing_failed",
        why or "the file could not be processed",
    )


async def _nothing_left(work: Work, seller_id: int) -> bool:
    """Complete the end of an upload whose worker was killed after the last slab. Return False if
    another worker has the lease, or the killed worker's lease has not expired.
    """
    async with work.database.tenant(seller_id) as session:
        state = await sync_state.locked(session, seller_id)
        if state.lease_holder != HOLDER and state.export_fingerprint is not None:
            return True
        lease = await sync_state.take_lease(
            session,
            seller_id,
            HOLDER,
            clock.now(),
            work.settings.lease_seconds,
        )
    if lease is None:
        return False
    try:
        await finish.settle_and_release(work, lease)
    except LeaseLost:
        log.warning("lease_lost", seller_id=seller_id, stream=STREAM)
    return True


UPLOADS = runner.Stream[Upload, Lease](
    STREAM,
    UnderLease(HOLDER),
    oldest=partial(oldest_open, stream=STREAM),
    work=importer.import_upload,
    fail=_fail,
    cancel=cancel.end_held,
    before=_before,
    begin=begin_upload,
    most_starts=_most_starts,
    nothing_left=_nothing_left,
)
work_off_one = partial(runner.work_off_one, UPLOADS)
