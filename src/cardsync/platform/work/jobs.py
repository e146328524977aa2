"""Queues background work with Procrastinate in the service's own database. A job only starts a
worker; the tables of accepted work define what is to be done.

`enqueue` defers on the session's own connection, so a job exists if and only if the transaction
commits. `grep jobs.task` lists all tasks. A job that a killed worker left behind is never retried:
the sweep finds the work itself through `work_due`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.tasks import Task
from sqlalchemy import DateTime, Index, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column
from structlog.contextvars import bound_contextvars

from cardsync.platform import clock
from cardsync.platform.database.columns import Base, BigInt, KeyPart
from cardsync.platform.database.session import Database, Statement, driver, run_all
from cardsync.platform.settings import Settings
from cardsync.platform.work.piece import Origin, origin

# A task of the queue.
AnyTask: TypeAlias = Task[Any, Any, Any]

if TYPE_CHECKING:
    from cardsync.platform.storage import Store

jobs = procrastinate.App(connector=procrastinate.PsycopgConnector())

# The stream of a seller's uploads of order data (orders/ingest.py).
ORDERS = "orders"
# The stream of a seller's promotions, due when the next promotion starts or ends
# (pricing/runs/sale_runs.py).
SALES = "sales"
# A seller's rows that may match a product after a catalog was loaded: cards
# (imports/rematch_cards.py) and rows of collections (buying/collections/rematch_collections.py).
REMATCHED_CARDS = "rematched_cards"
REMATCHED_COLLECTIONS = "rematched_collections"
# derived/kept_figures.py names the streams of kept figures.


class WorkDue(Origin, Base):
    """A seller's stream with accepted work, and the time since when. The table is global; each row
    is written in its tenant's own transaction.

    A row also stores which upload, run, event or rollback was put back (its work failed and is
    tried again later), how often, since when, and until when it rests. The row of a kept figure is
    itself the piece of work (`platform/derived/kept_figures.py`), with its starts and failures.
    """

    # The value of `put_back_id` if the row is itself the piece of work.
    id: ClassVar[int] = 0

    __tablename__ = "work_due"
    __table_args__ = (Index("ix_work_due_due_at", "due_at"),)
    seller_id: Mapped[KeyPart]
    stream: Mapped[str] = mapped_column(primary_key=True)
    due_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    put_back_id: Mapped[BigInt | None]
    put_back_times: Mapped[int] = mapped_column(server_default="0")
    put_back_since: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    rests_until: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    attempts: Mapped[int] = mapped_column(server_default="0")
    failures: Mapped[int] = mapped_column(server_default="0")


@dataclass(frozen=True)
class Work:
    """The objects that every task needs; the worker passes them with each job."""

    settings: Settings
    database: Database
    store: Store


def work_of(context: procrastinate.JobContext) -> Work:
    return cast(Work, context.additional_context["work"])


# The queue of jobs that mostly wait for other machines, such as a seller's webhook receivers.
SENDING = "sending"


def nudging(task: AnyTask, seller_id: int) -> dict[str, Any]:
    """Return the options that defer a task for a seller: at most one job of the task waits. In the
    queue SENDING at most one job per seller runs, so that a seller takes no slots from other
    sellers.
    """
    turn = f"{task.name}:{seller_id}"
    return {"queueing_lock": turn, "lock": turn if task.queue == SENDING else None}


async def with_its_name(
    call_next: Callable[[], Awaitable[object]], context: Any, _: object
) -> object:
    """Middleware of workers that adds the job's name to each log line of a job."""
    job = context.job
    with bound_contextvars(job=job.task_name, job_id=job.id):
        return await call_next()


_WAITING: Final = (
    "SELECT id FROM procrastinate_jobs WHERE queueing_lock = :turn AND status = 'todo' FOR SHARE"
)


async def enqueue(
    session: AsyncSession, *tasks: AnyTask, seller_id: int, first: Sequence[Statement] = ()
) -> None:
    """Defer the tasks inside this session's transaction, unless a job of the seller is already
    waiting. The statements `first` run before.

    One job does one piece of work and queues the next job behind all others, so that a seller who
    uploads fifty files does not delay other sellers by fifty.
    """
    turns = [nudging(task, seller_id)["queueing_lock"] for task in tasks]
    # A waiting job is locked until this transaction commits, so that no worker takes the job before
    # its work is visible.
    asked = [*first, *((_WAITING, {"turn": turn}) for turn in turns)]
    rows = await run_all(session, asked)
    for task, waiting in zip(tasks, rows[len(first) :], strict=True):
        if not waiting:
            await _defer(session, task, seller_id)


async def _defer(session: AsyncSession, task: AnyTask, seller_id: int) -> None:
    nudge = nudging(task, seller_id)
    connection = await driver(session)
    deferrer = task.configure(connection=connection, **nudge)
    try:
        async with connection.transaction():
            await deferrer.defer_async(seller_id=seller_id)
    except AlreadyEnqueued:
        # Another transaction queued a job meanwhile, which a worker may have taken already.
        await enqueue(session, task, seller_id=seller_id)
    except ConnectorException as e:
        # Raise the driver's own error, which callers handle: an unavailable database is answered
        # 503.
        cause = e.__cause__ or e
        raise cause from None


async def mark_due(session: AsyncSession, seller_id: int, stream: str) -> None:
    """Mark a stream for the sweep, in the transaction that creates its work. If our clock is ahead
    of the database's, the mark has the database's time: the sweep would otherwise wait.
    """
    await session.execute(
        text("""
            INSERT INTO work_due (seller_id, stream, due_at, request_id, traceparent)
            VALUES (:seller_id, :stream, least(:now, clock_timestamp()), :request_id, :traceparent)
            ON CONFLICT (seller_id, stream) DO UPDATE
               SET due_at = excluded.due_at, request_id = excluded.request_id,
                   traceparent = excluded.traceparent
        """),
        {
            "seller_id": seller_id,
            "stream": stream,
            "now": clock.now(),
            **origin(),
        },
    )


async def mark_due_by(session: AsyncSession, seller_id: int, stream: str, at: datetime) -> None:
    """Mark work that is due at `at`; an earlier due time stays."""
    await session.execute(
        text("""
            INSERT INTO work_due (seller_id, stream, due_at) VALUES (:seller_id, :stream, :at)
            ON CONFLICT (seller_id, stream) DO UPDATE
              SET due_at = least(work_due.due_at, excluded.due_at)
        """),
        {"seller_id": seller_id, "stream": stream, "at": at},
    )
