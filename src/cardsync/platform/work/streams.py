"""The shared parts of the streams of accepted work: the keys of accepted bytes, the next upload,
each stream's mark for the sweep, and the decision about a failed piece of work
(`platform/work/setbacks.py`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import structlog
from sqlalchemy import delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.work.jobs import WorkDue
from cardsync.platform.work.models import Upload
from cardsync.platform.work.setbacks import (
    LONGEST_PAUSE,
    GiveUp,
    PutBack,
    Setback,
    Tries,
    TryAgain,
    decide,
)

log = structlog.get_logger(__name__)

OPEN = ("queued", "processing")


def private_key(seller_id: int, suffix: str) -> str:
    """Return a new key for accepted bytes, which no URL reaches."""
    return f"accepted/u{seller_id}/{uuid.uuid4()}.{suffix}"


async def oldest_open(session: AsyncSession, seller_id: int, stream: str) -> Upload | None:
    statement = (
        select(Upload)
        .where(
            Upload.seller_id == seller_id,
            Upload.stream == stream,
            Upload.state.in_(OPEN),
        )
        .order_by(Upload.id)
        .limit(1)
    )
    return (
        await session.execute(statement.execution_options(populate_existing=True))
    ).scalar_one_or_none()


async def hold_still(session: AsyncSession, seller_id: int, stream: str) -> None:
    """Wait for the upload that is being applied, and prevent other uploads from beginning until
    this transaction ends.

    The caller has locked the seller's state row, so no upload is accepted in the meantime.
    """
    statement = select(Upload.id).where(
        Upload.seller_id == seller_id,
        Upload.stream == stream,
        Upload.state.in_(OPEN),
    )
    await session.execute(statement.order_by(Upload.id).with_for_update())


def begin_upload(upload: Upload, now: datetime) -> None:
    """Mark the upload as begun, for its report."""
    upload.state = "processing"
    upload.begun_at = upload.begun_at or now


@dataclass(frozen=True)
class Due:
    """A stream's mark. A turn reads the mark before it looks for work, so that `forget` never
    removes a newer mark.
    """

    at: datetime
    put_back_id: int | None
    tries: Tries
    rests_until: datetime | None

    def tries_of(self, work_id: int) -> Tries:
        """Return the earlier setbacks of this piece; the setbacks of an earlier piece do
        not count.
        """
        return self.tries if self.put_back_id == work_id else Tries()

    def rests(self, work_id: int, now: datetime) -> bool:
        """Return whether the piece was put back and must still wait; a job may run earlier. A pause
        longer than `LONGEST_PAUSE` was stored by a host with a wrong clock, and is ignored.
        """
        until = self.rests_until
        if self.put_back_id != work_id or until is None:
            return False
        return now < until <= now + LONGEST_PAUSE


async def due_of(session: AsyncSession, seller_id: int, stream: str) -> Due | None:
    row = await session.scalar(
        select(WorkDue)
        .where(WorkDue.seller_id == seller_id, WorkDue.stream == stream)
        .execution_options(populate_existing=True)
    )
    if row is None:
        return None
    return Due(
        row.due_at,
        row.put_back_id,
        Tries(row.put_back_times, row.put_back_since),
        row.rests_until,
    )


class Queue(NamedTuple):
    """The queue before an upload. `ahead` counts the seller's own earlier uploads of the stream and
    the other sellers' streams that wait for a turn.
    """

    ahead: int
    oldest_seconds: int


_QUEUE: Final = """
    SELECT (SELECT count(*) FROM upload
             WHERE seller_id = :seller AND stream = :stream AND id < :id
                   AND state IN ('queued', 'processing')),
           count(*) FILTER (WHERE seller_id <> :seller), min(due_at)
      FROM work_due
     WHERE stream NOT IN ('screenshots', 'pictures', 'picture_files', 'notices', 'mail', 'webhooks')
           AND due_at <= :now AND (rests_until IS NULL OR rests_until <= :now)
"""


async def queue_of(source: Source, upload: Upload, now: datetime) -> Queue:
    """Return the length of the queue before an upload, and the longest wait in the queue."""
    values = {"seller": upload.seller_id, "stream": upload.stream, "id": upload.id, "now": now}
    [[own, others, due]] = await rows_of(source)(_QUEUE, values)
    oldest = min(due or now, upload.received_at)
    return Queue(own + others, max(0, round((now - oldest).total_seconds())))


async def forget(session: AsyncSession, seller_id: int, stream: str, due: Due | None) -> None:
    """Remove only the mark that was read: an upload that was accepted since then has set a newer
    mark.
    """
    if due is not None:
        await session.execute(
            delete(WorkDue).where(
                WorkDue.seller_id == seller_id,
                WorkDue.stream == stream,
                WorkDue.due_at == due.at,
            )
        )


async def hold_mark(session: AsyncSession, seller_id: int, stream: str) -> datetime | None:
    """Return the due time of a stream whose one piece is its mark, and lock the mark until this
    transaction ends, so that later work sets a new mark.
    """
    own = (WorkDue.seller_id == seller_id) & (WorkDue.stream == stream)
    return await session.scalar(select(WorkDue.due_at).where(own).with_for_update())


async def leave_mark(
    session: AsyncSession, seller_id: int, stream: str, until: datetime | None
) -> None:
    """Set a locked mark to the time of the next work, or remove it if no work is left."""
    own = (WorkDue.seller_id == seller_id) & (WorkDue.stream == stream)
    if until is None:
        await session.execute(delete(WorkDue).where(own))
        return
    begins_anew: dict[str, object] = {
        "attempts": 0,
        "failures": 0,
        "put_back_id": None,
        "put_back_times": 0,
        "put_back_since": None,
        "rests_until": None,
    }
    await session.execute(update(WorkDue).where(own).values(due_at=until, **begins_anew))


def setback(
    error: Exception,
    work_id: int,
    due: Due | None,
    failures: int,
) -> Setback:
    """Decide about a stream's oldest piece of work after a failure, and log the decision."""
    now = clock.now()
    tries = due.tries_of(work_id) if due is not None else Tries()
    decided = decide(error, tries, failures, now)
    bound = log.bind(error=type(error).__name__)
    match decided:
        case PutBack():
            pause = round((decided.until - now).total_seconds())
            bound.warning(
                "work_put_back",
                kind=decided.kind,
                times=decided.tries.times,
                pause_seconds=pause,
            )
        case TryAgain():
            bound.exception("work_crashed", exc_info=error, failures=decided.failures)
        case GiveUp():
            bound.error(
                "work_given_up",
                exc_info=error,
                kind=decided.kind,
                times=tries.times,
                failures=failures,
            )
    return decided


async def rest(
    session: AsyncSession,
    seller_id: int,
    stream: str,
    work_id: int,
    back: PutBack,
) -> None:
    """Store how long a piece rests, in the transaction in which the caller puts the piece back. The
    sweep starts the piece again after this time.
    """
    await session.execute(
        text("""
            INSERT INTO work_due AS w (seller_id, stream, due_at, put_back_id, put_back_times,
                put_back_since, rests_until)
            VALUES (:seller, :stream, :now, :work, :times, :since, :until)
            ON CONFLICT (seller_id, stream) DO UPDATE
               SET put_back_id = excluded.put_back_id, put_back_times = excluded.put_back_times,
                   put_back_since = excluded.put_back_since, rests_until = excluded.rests_until
        """),
        {
            "seller": seller_id,
            "stream": stream,
            "now": clock.now(),
            "work": work_id,
            "times": back.tries.times,
            "since": back.tries.since,
            "until": back.until,
        },
    )
