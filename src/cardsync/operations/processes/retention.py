"""Moves old rows into the object store, and deletes expired data: unclaimed objects, raw uploads,
screenshots, receipts, market observations, notices, plans, ended sessions, past access of
assistants, unmet demand and full rate limits; and removes accounts that are due. Any worker may run
this work at any moment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import procrastinate
import structlog
from sqlalchemy import text

from cardsync.access import sessions
from cardsync.access.rate_limits import buckets
from cardsync.assistant.oauth import grants
from cardsync.buying.offers import expired_offers, into_stock
from cardsync.catalog.market import load_observations as market
from cardsync.network import misses
from cardsync.operations import put_away
from cardsync.platform import clock
from cardsync.platform.work.jobs import Work, jobs, work_of
from cardsync.prices.loss import moves
from cardsync.prices.plans import expired_plans
from cardsync.shop.accounts import challenges, deletion
from cardsync.shop.notices import old_notices
from cardsync.stock.cards import history
from cardsync.tables import GLOBAL_BY_SELLER, tenant_tables

log = structlog.get_logger(__name__)

MOST_APART: Final = timedelta(minutes=10)


async def has_right_time(work: Work) -> bool:
    """Return whether this host and the database agree on the time. With a wrong clock new rows may
    look too old, and deleted rows cannot be recovered.
    """
    async with work.database.shared() as session:
        at: datetime = await session.scalar(text("SELECT clock_timestamp()"))
    apart = abs(clock.now() - at)
    if apart > MOST_APART:
        log.warning("nothing_tidied", reason="the clocks differ", seconds=apart.total_seconds())
    return apart <= MOST_APART


async def tidy(work: Work) -> dict[str, int]:
    """Delete expired data; return how many objects of each kind, months of history and limits were
    deleted. A step that fails does not stop later steps.

    Raises an ExceptionGroup with the errors of the failed steps.
    """
    removed: dict[str, int] = {}
    failures: list[Exception] = []
    for name, step in _steps(work, clock.now()).items():
        try:
            removed[name] = await step()
        except Exception as e:
            log.warning("tidy_step_failed", step=name, kind=type(e).__name__)
            failures.append(e)
    if any(removed.values()):
        log.info("tidied", **removed)
    if failures:
        raise ExceptionGroup("tidying up failed in part", failures)
    return removed


def _steps(work: Work, now: datetime) -> dict[str, Callable[[], Awaitable[int]]]:
    database, settings, sweep = work.database, work.settings, work.store.sweep

    def before(days: int) -> datetime:
        return now - timedelta(days=days)

    unclaimed = before(settings.unclaimed_retention_days)
    return {
        "unclaimed": partial(sweep, "syncs/", unclaimed),
        "incoming": partial(sweep, "incoming/", unclaimed),
        "catalog_files": partial(sweep, "catalogs/", unclaimed),
        "uploads": partial(sweep, "accepted/", before(settings.upload_retention_days)),
        "receipts": partial(sweep, "receipts/", before(settings.receipt_retention_days)),
        # The screenshots' rows are deleted by the stream "screenshots" of work_due, one transaction
        # per seller.
        "screenshots": partial(sweep, "debug/", before(settings.screenshot_retention_days)),
        "old_rows": partial(put_away.put_away, work),
        "old_files": partial(put_away.drop_old, work),
        "old_strays": partial(put_away.sweep_strays, work),
        "history_months": partial(history.drop_old, work),
        "market": partial(market.drop_old, database, before(settings.market_retention_days)),
        "notices": partial(old_notices.drop_old, database, before(settings.notice_retention_days)),
        "plans_expired": partial(expired_plans.expire, database, now),
        "plans": partial(expired_plans.drop_old, database, before(settings.plan_retention_days)),
        "offers_expired": partial(expired_offers.expire, database, now),
        "late_lots": partial(into_stock.give_late_lots, database, now),
        "automated_moves": partial(moves.drop_old, database, now),
        "sessions": partial(sessions.drop_past, database, settings, now),
        "passkey_challenges": partial(challenges.drop_past, database, now),
        "assistants": partial(grants.drop_past, database, now),
        "network_misses": partial(misses.drop_old, database, now),
        "rate_limits": partial(buckets.drop_past, database),
    }


@jobs.task(name="accounts.remove", queue="housekeeping", pass_context=True)
async def remove_account(context: procrastinate.JobContext, seller_id: int) -> None:
    await deletion.remove(work_of(context), seller_id, tenant_tables(), GLOBAL_BY_SELLER)
