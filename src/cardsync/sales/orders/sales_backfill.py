"""Requests missing sales reports from the agent: the end of a sync queues a task for the oldest
missing months.

A sync uploads at most two months, including the months that it uploaded without a request. If an
agent could not upload a month, the next request is a day later. A month that the marketplace does
not offer is requested again after 30 days, so that later months are requested first.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.agentwork.tasks import enqueue_routine
from cardsync.sales.limits import SALES_REPORT_MONTHS_A_CYCLE
from cardsync.sales.orders.sales_reports import months_missing

KIND = "backfill_sales_report"
ASKED_AGAIN_AFTER = timedelta(days=1)
ABSENT_FOR = timedelta(days=30)

_BROUGHT = "SELECT count(*) FROM sales_report WHERE seller_id = :seller AND received_at >= :since"
# The day's failures, whatever their reason, and the months that were not there.
_FAILED = """
    SELECT finished_at > :today, payload->'months', error->>'code' = 'nothing_there'
      FROM agent_task WHERE seller_id = :seller AND kind = :kind AND status = 'failed'
       AND finished_at > :since
"""


async def ask_for_missing_months(
    session: AsyncSession,
    seller_id: int,
    began_at: datetime,
    now: datetime,
) -> None:
    """Queue the task at the end of a sync that began at `began_at`; the caller has locked the row
    of the sync state.
    """
    brought = await session.scalar(text(_BROUGHT), {"seller": seller_id, "since": began_at})
    most = SALES_REPORT_MONTHS_A_CYCLE - (brought or 0)
    if most <= 0:
        return
    since = {"today": now - ASKED_AGAIN_AFTER, "since": now - ABSENT_FOR}
    values = {"seller": seller_id, "kind": KIND, **since}
    failed = (await session.execute(text(_FAILED), values)).all()
    if any(today for today, _, _ in failed):
        return
    absent = {month for _, months, is_absent in failed if is_absent for month in months or ()}
    missing = [month.isoformat() for month in await months_missing(session, seller_id, now)]
    months = [month for month in missing if month not in absent][:most]
    if months:
        await enqueue_routine(session, seller_id, KIND, {"month": months[0], "months": months}, now)
