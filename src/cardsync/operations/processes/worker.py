"""Runs a worker: it processes jobs, sweeps for work without a job, and deletes old data.

Every task's module is imported here, because a worker runs only the tasks of imported modules.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued
from sqlalchemy import or_, select, text

from cardsync.agents.repairs.heal import drop_heals
from cardsync.agents.sync.debug import drop_screenshots
from cardsync.buying.collections.drain_collections import COLLECTIONS, drain_collections
from cardsync.buying.collections.rematch_collections import rematch_collections
from cardsync.catalog import renew_catalogs
from cardsync.catalog.market.network_cells import CELLS
from cardsync.imports.drain import drain_inventory
from cardsync.imports.rematch_cards import rematch_cards
from cardsync.network.offers import OFFERS
from cardsync.operations.processes.await_database import show_life
from cardsync.operations.processes.metrics_server import own_metrics_served
from cardsync.operations.processes.parent_watch import watch_parent
from cardsync.operations.processes.retention import has_right_time, remove_account, tidy
from cardsync.operations.processes.worker_memory import limit_memory
from cardsync.platform import clock
from cardsync.platform.concurrency import beside, every
from cardsync.platform.database.connections import CONNECT_SECONDS, RECONNECT_SECONDS
from cardsync.platform.database.session import Database
from cardsync.platform.derived.kept_figures import TASKS, KeptFigure
from cardsync.platform.derived.stock import STOCK
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.platform.telemetry.exporting import exporting
from cardsync.platform.work.jobs import (
    ORDERS,
    REMATCHED_CARDS,
    REMATCHED_COLLECTIONS,
    SALES,
    SENDING,
    AnyTask,
    Work,
    WorkDue,
    jobs,
    nudging,
    with_its_name,
)
from cardsync.platform.work.setbacks import LONGEST_PAUSE
from cardsync.prices.files.kept_file import PRICE_FILE
from cardsync.prices.recommendations.generate import RECOMMENDATIONS
from cardsync.prices.rollback.apply_imported_prices import move_prices
from cardsync.prices.rollback.prepare import prepare_rollback
from cardsync.prices.runs.reprice import reprice
from cardsync.prices.runs.sale_runs import begin_sale_runs
from cardsync.sales.lots.settle_uses import LOTS
from cardsync.sales.orders.ingest import drain_orders
from cardsync.sales.orders.sales_sums import SALES_SUMS
from cardsync.sales.orders.search_parts import ORDER_SEARCH
from cardsync.shop.accounts import deletion, left_objects
from cardsync.shop.notices import look, send_mail, send_webhooks
from cardsync.shop.notices.record_notices import MAIL, WEBHOOKS
from cardsync.stock.pictures import ask
from cardsync.stock.pictures.fetch_pictures import fetch_pictures
from cardsync.web.public_fetch import Outward

# The task for each stream of work_due.
STREAMS: dict[str, AnyTask] = {
    "inventory": drain_inventory,
    COLLECTIONS: drain_collections,
    REMATCHED_CARDS: rematch_cards,
    REMATCHED_COLLECTIONS: rematch_collections,
    ORDERS: drain_orders,
    "screenshots": drop_screenshots,
    "repairs": drop_heals,
    "reprice": reprice,
    "rollback": prepare_rollback,
    "repricing": move_prices,
    SALES: begin_sale_runs,
    deletion.STREAM: remove_account,
    left_objects.STREAM: left_objects.sweep_left_objects,
    ask.ASK: ask.note_addresses,
    ask.FILES: fetch_pictures,
    look.LOOK: look.look_for_news,
    MAIL: send_mail.send_mail,
    WEBHOOKS: send_webhooks.send_webhooks,
    **TASKS,
}
# The declarations of all kept figures (docs/derived.md).
KEPT: tuple[KeptFigure[Any], ...] = (
    STOCK, LOTS, SALES_SUMS, ORDER_SEARCH, OFFERS, CELLS, RECOMMENDATIONS, PRICE_FILE,
)  # fmt: skip
# A worker runs one import or housekeeping job at a time. Meanwhile it also fetches one picture at a
# time, checks a few shops for notices, sends notices, and downloads catalogs, so that no import
# waits for another machine. Sending mostly waits, so it has many slots; a shop uses one slot for
# each task.
QUEUES = ["imports", "housekeeping"]
PICTURE_QUEUES = ["pictures"]
CATALOG_QUEUES = ["catalogs"]
NOTICE_QUEUES = ["notices"]
NOTICES_AT_ONCE = 3
SENDING_QUEUES = [SENDING]
SENT_AT_ONCE = 20
# A worker ends after this many seconds without a connection.
AWAY_SECONDS = 10.0
# Each worker looks for expired data at this interval.
TIDY_SECONDS = 3600


@asynccontextmanager
async def opened(database: Database, size: int = 4) -> AsyncIterator[procrastinate.App]:
    """Open the app with its own connections, as workers need it."""
    connector = procrastinate.PsycopgConnector(
        conninfo=database.url,
        min_size=1,
        max_size=size,
        timeout=AWAY_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
        kwargs={"connect_timeout": CONNECT_SECONDS},
    )
    with jobs.replace_connector(connector) as app:
        async with app.open_async():
            yield app


def worker_options(work: Work) -> dict[str, Any]:
    """Return the options of every worker (tests run jobs inline with the same options)."""
    return {
        "concurrency": 1,
        "fetch_job_polling_interval": 1.0,
        "delete_jobs": "always",
        "shutdown_graceful_timeout": 20,
        "worker_middleware": [with_its_name],
        "additional_context": {"work": work, "kept": {kept.figure: kept for kept in KEPT}},
    }


async def run_worker(work: Work) -> None:
    """Process jobs until the process gets a signal to end."""
    async with (
        opened(work.database, 8) as app,
        _sweeping(work),
    ):
        options = worker_options(work)
        quietly: dict[str, Any] = options | {"install_signal_handlers": False}
        pictures = app.run_worker_async(queues=PICTURE_QUEUES, **quietly)
        catalogs = app.run_worker_async(queues=CATALOG_QUEUES, **quietly)
        several = quietly | {"concurrency": NOTICES_AT_ONCE}
        notices = app.run_worker_async(queues=NOTICE_QUEUES, **several)
        many = quietly | {"concurrency": SENT_AT_ONCE}
        sending = app.run_worker_async(queues=SENDING_QUEUES, **many)
        imports = app.run_worker_async(queues=QUEUES, **options)
        async with (
            beside(pictures) as first,
            beside(notices) as second,
            beside(sending) as third,
            beside(catalogs) as fourth,
            beside(imports) as fifth,
        ):
            # Each of these workers ends if the database is unavailable when it requests a job. Then
            # the whole process ends, and its supervisor starts another process.
            await asyncio.wait(
                (first, second, third, fourth, fifth), return_when=asyncio.FIRST_COMPLETED
            )


@asynccontextmanager
async def _sweeping(work: Work) -> AsyncIterator[None]:
    """Do the work at intervals that no job requests, and touch the file that a probe checks,
    however long the other work takes.
    """
    settings = work.settings
    soon, alive = settings.sweep_seconds, settings.worker_alive_file

    async def show() -> None:
        if alive is not None:
            show_life(alive)

    async def nudge() -> None:
        await sweep(work)
        await renew_catalogs.nudge(work)

    async def clean() -> None:
        if await has_right_time(work):
            await tidy(work)

    async with (
        every(soon, show, "life_not_shown", first=0),
        every(soon, nudge, "sweep_failed"),
        every(settings.notice_seconds, partial(look.watch_all, work), "watch_failed", first=soon),
        every(TIDY_SECONDS, clean, "tidy_failed", first=soon),
    ):
        yield


async def sweep(work: Work) -> int:
    """Queue a job for every stream whose work has waited too long, and delete the jobs of killed
    workers.

    Return the number of these streams.
    """
    now = clock.now()
    before = now - timedelta(seconds=work.settings.sweep_seconds)
    until = WorkDue.rests_until
    # A pause that ends impossibly late was stored by a host with a wrong clock.
    rested = or_(until.is_(None), until <= now, until > now + LONGEST_PAUSE)
    async with work.database.shared() as session:
        # A killed worker's job stays `doing` forever. The job is not needed, because the rows of
        # work_due below show its work.
        await session.execute(
            text(
                "DELETE FROM procrastinate_jobs WHERE status = 'doing' AND worker_id IS NULL OR status = 'failed'"
            )
        )
        late = select(WorkDue).where(WorkDue.due_at < before, rested)
        late = late.order_by(WorkDue.due_at).limit(1000)
        # Checks of shops recur forever, so all other work is queued first.
        due = [
            *await session.scalars(late.where(WorkDue.stream != look.LOOK)),
            *await session.scalars(late.where(WorkDue.stream == look.LOOK)),
        ]
    for row in due:
        task = STREAMS[row.stream]
        with contextlib.suppress(AlreadyEnqueued):
            nudge = task.configure(**nudging(task, row.seller_id))
            await nudge.defer_async(seller_id=row.seller_id)
    return len(due)


def serve_jobs(settings: Settings) -> None:
    """Run one worker process until SIGTERM. `settings` must name a running and migrated database."""

    async def main() -> None:
        assert settings.database_url is not None
        async with Database.open(
            settings.database_url,
            pool=settings.database_pool,
            hot_pool=0,
            slow=settings.slow_seconds,
            pooler=settings.pooler_database_url,
        ) as opened:
            await run_worker(Work(settings, opened, open_store(settings)))

    watch_parent()
    limit_memory(settings.worker_memory_mb)
    Outward.allowed = settings.outward_requests
    with exporting(settings, "worker"), own_metrics_served(settings):
        asyncio.run(main())
