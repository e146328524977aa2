"""Confirms or discards an upload or a pricing run that needs review.

An upload that needs review has its own run, and a run that needs review may follow a finished
upload. The routes of uploads and runs both settle the upload with its run; a second caller of
either route gets NotAwaitingReview.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.sync import cancel
from cardsync.imports.accept_inventory import upload_of
from cardsync.imports.drain import drain_inventory
from cardsync.platform import errors
from cardsync.platform.work.jobs import enqueue, mark_due
from cardsync.platform.work.models import Upload
from cardsync.prices.models import PriceRun
from cardsync.prices.plans.permissions import who_writes
from cardsync.prices.plans.writer import Waiting, Writer, write
from cardsync.prices.runs import reprice, run_reads

Word = Literal["confirmed", "discarded"]

_SET_RUN = """
    UPDATE price_run SET state = :state, finished_at = :finished_at
     WHERE seller_id = :seller AND upload_id = :id
"""


async def settle_upload(
    session: AsyncSession,
    caller: Caller,
    upload_id: int,
    word: Word,
    now: datetime,
) -> Upload:
    """Confirm or discard the upload, or the run that followed it. Raises NotFound,
    NotAwaitingReview.
    """
    caller.must_be_owner()
    upload = await upload_of(session, caller.seller_id, upload_id)
    if upload.state == "done":
        behind = await reprice.following(session, caller.seller_id, [upload_id])
        if upload_id in behind:
            await reprice.settle_review(session, caller, behind[upload_id].id, word, now)
            return upload
    return await _SETTLE[word](session, caller, upload_id, now)


async def settle_run(writer: Writer, run_id: int, word: Word) -> PriceRun:
    """Confirm or discard a run. An API key or token can confirm only prices within the loss limits.
    Raises the errors of `_settle_run`, NeedsReview and RefusedByGrant.
    """
    session, caller, _, now, _ = writer
    if word == "discarded":
        await who_writes(session, caller, "pricing.change_set")
        return await _settle_run(session, caller, run_id, word, now)
    waiting = Waiting(run_id, f"/pricing/runs/{run_id}", by_rules=True)
    async with write(writer._replace(confirmed=True), waiting):
        return await _settle_run(session, caller, run_id, word, now)


async def _settle_run(
    session: AsyncSession,
    caller: Caller,
    run_id: int,
    word: Word,
    now: datetime,
) -> PriceRun:
    """Confirm or discard the run, or the upload of the run. Raises NotFound, NotAwaitingReview."""
    caller.must_be_owner()
    run = await run_reads.run_of(session, caller, run_id)
    if run.upload_id is None:
        return await reprice.settle_review(session, caller, run_id, word, now)
    await _SETTLE[word](session, caller, run.upload_id, now)
    await session.refresh(run)
    return run


async def _confirm(
    session: AsyncSession,
    caller: Caller,
    upload_id: int,
    now: datetime,
) -> Upload:
    """Confirm an upload: it is imported again and sets all targets."""
    await cancel.end_left(session, caller.seller_id, now)
    state = await sync_state.locked(session, caller.seller_id)
    upload = await _in_review(session, caller.seller_id, upload_id)
    upload.state = "queued"
    upload.confirmed = True
    upload.finished_at = None
    upload.begun_at = None
    upload.attempts = 0
    upload.failures = 0
    # `review_upload_id` remains set until the run ends, so that the export does not change before.
    state.uploads_open += 1
    await _set_run(session, upload, "running", None)
    note(session, caller, "upload.confirmed", f"upload {upload_id} confirmed", now)
    await mark_due(session, caller.seller_id, "inventory")
    await enqueue(session, drain_inventory, seller_id=caller.seller_id)
    return upload


async def _discard(session: AsyncSession, caller: Caller, upload_id: int, now: datetime) -> Upload:
    """Discard an upload: its row updates remain, but no card is marked as gone or repriced."""
    state = await sync_state.locked(session, caller.seller_id)
    upload = await _in_review(session, caller.seller_id, upload_id)
    upload.state = "discarded"
    upload.finished_at = now
    state.review_upload_id = None
    await _set_run(session, upload, "discarded", now)
    note(session, caller, "upload.discarded", f"upload {upload_id} discarded", now)
    return upload


async def _set_run(
    session: AsyncSession,
    upload: Upload,
    state: str,
    finished_at: datetime | None,
) -> None:
    ids = {"seller": upload.seller_id, "id": upload.id}
    await session.execute(text(_SET_RUN), ids | {"state": state, "finished_at": finished_at})


_SETTLE = {"confirmed": _confirm, "discarded": _discard}


async def _in_review(session: AsyncSession, seller_id: int, upload_id: int) -> Upload:
    upload = await upload_of(session, seller_id, upload_id, lock=True)
    if upload.state != "awaiting_review":
        raise errors.NotAwaitingReview(
            f"upload {upload_id} is {upload.state}, not waiting for review"
        )
    return upload
