"""Runs the one worker loop: it takes a stream's oldest piece of work, and does it, puts it back or
gives it up.

A turn finds the oldest piece, takes its hold against other workers, counts the start, works, and
leaves the piece in one of the states below. A piece is an upload, a pricing run, a rollback, an
event or the mark of a kept figure. A `Stream` defines how each of its pieces is found, held, worked
and ended. `platform/work/setbacks.py` decides how long a piece rests after a failure. The lease is
not imported, because its package is above this package: a stream that needs the lease passes it as
its `Holding` (`agents/seller_state/lease.py`).

- The worker is killed: the piece stays open, and its start is counted. Another worker begins the
  piece again once the hold is free: a lease expires, a row lock ends.
- Workers were killed over 20 times (100 times for an inventory upload with a stored verdict): the
  piece is given up.
- A dependency is unavailable, a disk is full, or access is forbidden: the hold is released, the
  start is not counted, and the piece rests for 2 seconds, twice as long each time, at most 10
  minutes. After a day and over 30 tries the piece is given up.
- The work itself fails: the hold is released, and the piece is tried again immediately. After 3
  failures, or if the file is gone or refused (a Problem), the piece is given up.
- The seller cancels the sync: an inventory upload is cancelled with the uploads behind it, and a
  `reprice` is cancelled. Pieces of the other streams continue.
- Another worker took the piece over: this worker writes nothing more, and the other worker ends the
  piece.

A piece that is given up becomes `failed`; a `repricing` event is settled with an error.
Earlier commits always remain, and the stream continues with the next piece.

A kept figure (`platform/derived/kept_figures.py`) is a stream of one piece, its mark. The mark is
started, put back and given up by the same rules, and continues when the seller cancels a sync. A
mark that is given up is removed: readers have the previous figures until the next mark.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import procrastinate
import psycopg
import structlog
from sqlalchemy import inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from structlog.contextvars import bound_contextvars

from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.telemetry import spans
from cardsync.platform.work.jobs import AnyTask, Work, WorkDue, enqueue, work_of
from cardsync.platform.work.metrics import WORK_ENDED, WORK_SECONDS
from cardsync.platform.work.piece import CancelRequested, LeaseLost, Piece
from cardsync.platform.work.setbacks import GiveUp, PutBack, TryAgain
from cardsync.platform.work.streams import Due, due_of, forget, rest, setback

log = structlog.get_logger(__name__)

# A piece that kills its worker is given up after this many starts.
MAX_STARTS = 20

P = TypeVar("P", bound=Piece | WorkDue)
Q = TypeVar("Q", bound=Piece | WorkDue, contravariant=True)
H = TypeVar("H")


class Holding(Protocol[Q, H]):
    """A hold that keeps other workers away from a piece: the seller's lease, the piece's own row,
    or a lock of the figure that it refreshes.
    """

    async def take(self, session: AsyncSession, piece: Q, settings: Settings) -> H | None:
        """Take the hold; return None if another worker has it."""

    async def release(self, session: AsyncSession, hold: H) -> None:
        """Release the hold. Raises LeaseLost if another worker has it by now."""

    def kept(self, database: Database, hold: H) -> AbstractAsyncContextManager[None]:
        """Keep the hold alive while the block works."""


async def _nothing_before(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Do nothing: most streams have nothing to end before a turn."""


def _needs_no_mark(piece: object, now: datetime) -> None:
    """Do nothing: the tables of most streams do not record that a piece has begun."""


def _max_starts(piece: object) -> int:
    return MAX_STARTS


async def _nothing_left(work: Work, seller_id: int) -> bool:
    return True


@dataclass(frozen=True)
class Stream(Generic[P, H]):
    """The description of one stream: how its pieces are found, held, worked and ended.

    `work` ends its piece and releases the hold in its last transaction. `fail` ends a piece that is
    given up, with the failure's sentence and, if there is one, its code. `cancel` ends a piece that
    the seller cancelled; without `cancel` such a piece continues later.
    """

    name: str
    holding: Holding[P, H]
    oldest: Callable[[AsyncSession, int], Awaitable[P | None]]
    work: Callable[[Work, H, P], Awaitable[None]]
    fail: Callable[[Work, H, P, str | None, str], Awaitable[None]]
    cancel: Callable[[Work, H], Awaitable[None]] | None = None
    # `before` runs in the transaction that takes a piece, before the search for a piece.
    before: Callable[[AsyncSession, int, datetime], Awaitable[None]] = _nothing_before
    # `begin` marks the piece as begun in its tables; the piece's `attempts` do not include this
    # start.
    begin: Callable[[P, datetime], None] = _needs_no_mark
    # A piece that kills its workers is given up after this many starts.
    most_starts: Callable[[P], int] = _max_starts
    # `nothing_left` runs when no piece is open; if it returns False, the stream's mark stays for
    # the sweep.
    nothing_left: Callable[[Work, int], Awaitable[bool]] = _nothing_left


@dataclass(frozen=True)
class _Taken(Generic[P, H]):
    """A piece whose hold this worker has taken. `counted` is 1 if this start was added to the
    piece's attempts.
    """

    piece: P
    hold: H
    due: Due | None
    counted: int


async def take_turn(
    stream: Stream[P, H],
    task: AnyTask,
    context: procrastinate.JobContext,
    seller_id: int,
) -> None:
    """Run one turn of a seller; the seller's next turn is queued behind all other sellers'
    turns.
    """
    work = work_of(context)
    if await work_off_one(stream, work, seller_id):
        async with work.database.tenant(seller_id) as session:
            await enqueue(session, task, seller_id=seller_id)


async def work_off_one(
    stream: Stream[P, H],
    work: Work,
    seller_id: int,
    *,
    counted: bool = True,
) -> bool:
    """Process the oldest piece.

    Return True if there may be more to do now, and False if there is no piece, another worker has
    it, or it must wait for the next sweep. A start that is not `counted` does not count as an
    attempt.
    """
    taken = await _take_up(stream, work, seller_id, int(counted))
    if not isinstance(taken, _Taken):
        return taken
    with _watched(stream.name, taken.piece):
        return await _work_off(stream, work, taken)


@contextmanager
def _watched(stream: str, piece: Piece | WorkDue) -> Iterator[None]:
    """Add the piece's seller to the log lines and the trace of the block. If a request caused the
    piece, the trace continues the request's trace. Marks are frequent, so only a sample of them
    begins a trace.
    """
    ids: dict[str, object] = {"seller_id": piece.seller_id, "stream": stream, "work_id": piece.id}
    if piece.request_id:
        ids["request_id"] = piece.request_id
    lasting = isinstance(piece, Piece)
    started = clock.monotonic()
    with (
        bound_contextvars(**ids),
        spans.trace(f"work {stream}", piece.traceparent, kind="consumer", always=lasting, **ids),
    ):
        try:
            yield
        finally:
            WORK_SECONDS.labels(stream).observe(clock.monotonic() - started)


async def _work_off(stream: Stream[P, H], work: Work, taken: _Taken[P, H]) -> bool:
    """Work under the hold, and end or release it if the piece is cancelled."""
    try:
        try:
            async with stream.holding.kept(work.database, taken.hold):
                return await _work(stream, work, taken)
        except CancelRequested:
            log.info("work_cancelled")
            _count(stream.name, "cancelled")
            if stream.cancel is not None:
                await stream.cancel(work, taken.hold)
            else:
                async with work.database.tenant(taken.piece.seller_id) as session:
                    await stream.holding.release(session, taken.hold)
    except LeaseLost:
        log.warning("lease_lost")
        _count(stream.name, "lost")
    return True


def _count(stream: str, outcome: str) -> None:
    WORK_ENDED.labels(stream, outcome).inc()


async def _take_up(
    stream: Stream[P, H],
    work: Work,
    seller_id: int,
    counted: int,
) -> _Taken[P, H] | bool:
    """Return the oldest piece with its hold, or, without a hold, the return value of the turn."""
    async with work.database.tenant(seller_id) as session:
        due = await due_of(session, seller_id, stream.name)
        now = clock.now()
        await stream.before(session, seller_id, now)
        piece = await stream.oldest(session, seller_id)
        if piece is not None:
            if due is not None and due.rests(piece.id, now):
                return False
            hold = await stream.holding.take(session, piece, work.settings)
            if hold is None:
                return False
            # The piece is read again under the hold, because the earlier holder may have ended it
            # in the meantime.
            piece = await stream.oldest(session, seller_id)
            if piece is None:
                await stream.holding.release(session, hold)
                return True
            stream.begin(piece, now)
            piece.attempts += counted
            return _Taken(piece, hold, due, counted)
    if await stream.nothing_left(work, seller_id):
        async with work.database.tenant(seller_id) as session:
            await forget(session, seller_id, stream.name, due)
    return False


async def _work(stream: Stream[P, H], work: Work, taken: _Taken[P, H]) -> bool:
    """Do the work and handle its failure. Return False if the piece rests."""
    piece = taken.piece
    hold = taken.hold
    try:
        if piece.attempts > (most := stream.most_starts(piece)):
            log.error("work_given_up", kind="starts", times=most, failures=piece.failures)
            _count(stream.name, "given_up")
            await stream.fail(work, hold, piece, None, f"given up after {most} attempts")
        else:
            await stream.work(work, hold, piece)
            _count(stream.name, "done")
    except (LeaseLost, CancelRequested):
        raise
    except errors.Problem as problem:
        log.info("work_failed", code=problem.code)
        _count(stream.name, "refused")
        await stream.fail(work, hold, piece, problem.code, str(problem))
    except Exception as e:
        match setback(
            e,
            piece.id,
            taken.due,
            piece.failures,
        ):
            case PutBack() as back:
                _count(stream.name, "put_back")
                await _release(stream, work, taken, piece.failures, back)
                return False
            case TryAgain(failures):
                _count(stream.name, "tried_again")
                await _release(stream, work, taken, failures)
            case GiveUp(why=why):
                _count(stream.name, "given_up")
                await stream.fail(work, hold, piece, None, why)
    return True


async def _release(
    stream: Stream[P, H],
    work: Work,
    taken: _Taken[P, H],
    failures: int,
    back: PutBack | None = None,
) -> None:
    """Release the piece for another attempt. If the database does not answer, the release fails,
    and a lease expires by itself.
    """
    piece = taken.piece
    try:
        async with work.database.tenant(piece.seller_id) as session:
            await stream.holding.release(session, taken.hold)
            row = await session.get_one(type(piece), inspect(piece, True).identity)
            row.failures = failures
            if back is not None:
                row.attempts = piece.attempts - taken.counted
                await rest(session, piece.seller_id, stream.name, piece.id, back)
    except (SQLAlchemyError, psycopg.Error, OSError) as e:
        log.warning("work_not_put_back", error=type(e).__name__)
