"""Queues the agent's task to apply the price file after a run that changed prices.

When the price file has no rows any more, the waiting task is withdrawn.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.agents.agentwork.price_tasks import note_push
from cardsync.agents.agentwork.task_kinds import ROUTINE
from cardsync.agents.agentwork.tasks import end_tasks, enqueue_task, waiting_task
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import rows_as
from cardsync.platform.database.session import SessionReading

TASK = "apply_price_updates"


async def push_prices(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    cycle: str | None = None,
) -> None:
    """Queue a task if the account pushes prices now and no task waits already.

    The caller has locked the state row, as each change of the account does. `cycle` is the agent's
    sync cycle that led to the prices: an import of prices in that cycle ends the task.
    """
    reads = SessionReading(session)
    # A claimed task does not count as waiting, because the agent began it before these prices. A
    # task with an expired claim is offered again.
    [account], waiting = await at_once(
        rows_as(reads, Account, seller_id, ""), waiting_task(reads, seller_id, TASK, now)
    )
    if waiting is None and account.entitlements(now).sync_mode == "full":
        await enqueue_task(session, seller_id, TASK, {}, now, priority=ROUTINE)
    if cycle is not None:
        await note_push(session, seller_id, "cycles", cycle)


async def withdraw(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Cancel the waiting task, because the marketplace has the prices already: the seller imported
    them by hand, or changed them there.
    """
    await end_tasks(session, seller_id, TASK, "cancelled", now)
