"""Background work: Procrastinate in our own database. A job is only a nudge; the tables of accepted work are the truth.

`enqueue` defers on the session's own connection, so a job exists if and only if the transaction commits. `grep @jobs.task` lists
all tasks. A job that a killed worker left behind is never retried: the sweep finds the work itself through `work_due`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import procrastinate
import structlog
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.tasks import Task
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.db import Database, driver
from cardsync.inventory.models import WorkDue
from cardsync.settings import Settings
from cardsync.storage import Store

log = structlog.get_logger(__name__)

# How often each worker looks for what is kept no longer.
TIDY_SECONDS = 3600

jobs = procrastinate.App(connector=procrastinate.PsycopgConnector())


@dataclass(frozen=True)
class Work:
    """What every task needs; the worker passes it along with each job."""

    settings: Settings
    database: Database
    store: Store


def work_of(context: procrastinate.JobContext) -> Work:
    return cast(Work, context.additional_context["work"])


async def enqueue(session: AsyncSession, task: Task[Any, Any, Any], **ids: int) -> None:
    """Defer `task` inside this session's transaction."""
    await task.configure(connection=await driver(session)).defer_async(**ids)


async def mark_due(session: AsyncSession, seller_id: int, stream: str) -> None:
    """Tell the sweep, in the transaction that makes the work, that this stream has some."""
    await session.execute(
        text("""
            INSERT INTO work_due (seller_id, stream, due_at) VALUES (:seller_id, :stream, :now)
            ON CONFLICT (seller_id, stream) DO UPDATE SET due_at = excluded.due_at
        """),
        {"seller_id": seller_id, "stream": stream, "now": clock.now()},
    )


@asynccontextmanager
async def opened(database: Database, size: int = 4) -> AsyncIterator[procrastinate.App]:
    """The app with its own connections, as workers need it."""
    connector = procrastinate.PsycopgConnector(conninfo=database.url, min_size=1, max_size=size)
    with jobs.replace_connector(connector) as app:
        async with app.open_async():
            yield app


async def run_worker(work: Work, *, wait: bool = True) -> None:
    """Work jobs off; with `wait=False`, return when there is none left (tests run jobs inline that way)."""
    # The modules of the tasks, which import this one: a worker knows only tasks whose module is loaded.
    from cardsync.inventory import drain

    assert drain.drain_inventory.name in jobs.tasks
    async with opened(work.database) as app:
        sweeper = asyncio.create_task(_sweep_forever(work)) if wait else None
        try:
            await app.run_worker_async(
                wait=wait,
                concurrency=1,
                fetch_job_polling_interval=0.1 if not wait else 1.0,
                delete_jobs="always",
                shutdown_graceful_timeout=20,
                additional_context={"work": work},
                install_signal_handlers=wait,
            )
        finally:
            if sweeper:
                sweeper.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await sweeper


async def _sweep_forever(work: Work) -> None:
    from cardsync.retention import tidy

    tidied_at = clock.monotonic() - TIDY_SECONDS
    while True:
        await asyncio.sleep(work.settings.sweep_seconds)
        try:
            await sweep(work)
            if clock.monotonic() - tidied_at >= TIDY_SECONDS:
                tidied_at = clock.monotonic()
                await tidy(work)
        except Exception:
            log.exception("sweep_failed")


async def sweep(work: Work) -> int:
    """Nudge every stream whose work has waited too long; forget jobs of killed workers. Returns how many were nudged."""
    from cardsync.inventory.drain import STREAMS

    before = clock.now() - timedelta(seconds=work.settings.sweep_seconds)
    async with work.database.shared() as session:
        # A killed worker's job stays `doing` for ever and nothing needs it: work_due below finds the work itself.
        await session.execute(
            text("DELETE FROM procrastinate_jobs WHERE status = 'doing' AND worker_id IS NULL OR status = 'failed'")
        )
        due = (await session.execute(select(WorkDue).where(WorkDue.due_at < before).limit(1000))).scalars().all()
    for row in due:
        task = STREAMS[row.stream]
        # One waiting nudge a stream is enough.
        with contextlib.suppress(AlreadyEnqueued):
            await task.configure(queueing_lock=f"{row.stream}:{row.seller_id}").defer_async(seller_id=row.seller_id)
    return len(due)
