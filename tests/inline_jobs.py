"""Jobs inline: Procrastinate's own worker processes each job that waits, one after another, on
connections that stay open; what it starts around them is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from procrastinate import App, JobContext
from procrastinate.worker import Worker
from sqlalchemy import text

from cardsync.operations.processes.worker import opened, worker_options
from cardsync.platform.work.jobs import Work


@dataclass(frozen=True)
class InlineJobs:
    """A test process has one object; a test of the real worker holds it against that one
    (features/platform/work/test_inline_jobs.py).
    """

    app: App
    worker: Worker
    work: Work

    @classmethod
    @asynccontextmanager
    async def open(cls, work: Work) -> AsyncIterator[InlineJobs]:
        """Open the app for all tests of the process, and register one worker for them."""
        async with opened(work.database) as app:
            worker = Worker(app, install_signal_handlers=False, **worker_options(work))
            worker.worker_id = await app.job_manager.register_worker()
            async with work.database.shared() as session:
                # It has no heartbeat, and no other worker may take it for a dead one.
                alive = text(
                    "UPDATE procrastinate_workers SET last_heartbeat = 'infinity' WHERE id = :id"
                )
                await session.execute(alive, {"id": worker.worker_id})
            yield cls(app, worker, work)

    async def run(self) -> None:
        """Work off every job that waits and whose time has come."""
        assert self.worker.worker_id is not None
        fetch = self.app.job_manager.fetch_job
        while job := await fetch(queues=None, worker_id=self.worker.worker_id):
            context = JobContext(
                app=self.app,
                worker_name=self.worker.worker_name,
                additional_context=dict(worker_options(self.work)["additional_context"]),
                job=job,
                abort_reason=lambda: None,
                start_timestamp=time.time(),
            )
            # A job runs in a task of its own, and whoever is cancelled meanwhile waits for its end.
            running = asyncio.create_task(self.worker._process_job(context))
            try:
                await asyncio.shield(running)
            finally:
                await running
