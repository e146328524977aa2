"""Moves old rows into the object store, and deletes what is too old: unclaimed objects, raw
uploads, screenshots, receipts, market observations, notices, plans, ended sessions, past access of
assistants, unmet demand and full rate limits; and accounts that are to be removed. Any worker may
run it at any moment.
"""

from __future__ import annotations

from datetime import timedelta

import procrastinate
import structlog

from cardsync import clock
from cardsync.access import sessions
from cardsync.access.rate_limits import buckets
from cardsync.accounts import challenges, deletion
from cardsync.assistant.oauth import grants
from cardsync.buying.offers import expired_offers, into_stock
from cardsync.cards import history
from cardsync.discovery import misses
from cardsync.market import load_observations as market
from cardsync.notices import old_notices
from cardsync.old_data import put_away
from cardsync.plans import expired_plans
from cardsync.pricing.loss import moves
from cardsync.tables import GLOBAL_BY_SELLER, tenant_tables
from cardsync.work.jobs import Work, jobs, work_of

log = structlog.get_logger(__name__)


async def tidy(work: Work) -> dict[str, int]:
    """Delete what is too old; returns how many objects of each kind, months of history and limits
    went.
    """
    now = clock.now()
    settings = work.settings
    unclaimed = now - timedelta(days=settings.unclaimed_retention_days)
    removed = {
        "unclaimed": await work.store.sweep("syncs/", unclaimed),
        "incoming": await work.store.sweep("incoming/", unclaimed),
        "uploads": await work.store.sweep(
            "accepted/", now - timedelta(days=settings.upload_retention_days)
        ),
        "receipts": await work.store.sweep(
            "receipts/", now - timedelta(days=settings.receipt_retention_days)
        ),
        # Their rows go by the stream "screenshots" of work_due, a transaction a seller.
        "screenshots": await work.store.sweep(
            "debug/", now - timedelta(days=settings.screenshot_retention_days)
        ),
        "old_rows": await put_away.put_away(work),
        "old_files": await put_away.drop_old(work),
        "old_strays": await put_away.sweep_strays(work),
        "history_months": await history.drop_old(work),
        "market": await market.drop_old(
            work.database, now - timedelta(days=settings.market_retention_days)
        ),
        "notices": await old_notices.drop_old(
            work.database, now - timedelta(days=settings.notice_retention_days)
        ),
        "plans_expired": await expired_plans.expire(work.database, now),
        "plans": await expired_plans.drop_old(
            work.database, now - timedelta(days=settings.plan_retention_days)
        ),
        "offers_expired": await expired_offers.expire(work.database, now),
        "late_lots": await into_stock.give_late_lots(work.database, now),
        "automated_moves": await moves.drop_old(work.database, now),
        "sessions": await sessions.drop_past(work.database, settings, now),
        "passkey_challenges": await challenges.drop_past(work.database, now),
        "assistants": await grants.drop_past(work.database, now),
        "network_misses": await misses.drop_old(work.database, now),
        "rate_limits": await buckets.drop_past(work.database),
    }
    if any(removed.values()):
        log.info("tidied", **removed)
    return removed


@jobs.task(name="accounts.remove", queue="housekeeping", pass_context=True)
async def remove_account(context: procrastinate.JobContext, seller_id: int) -> None:
    await deletion.remove(work_of(context), seller_id, tenant_tables(), GLOBAL_BY_SELLER)
