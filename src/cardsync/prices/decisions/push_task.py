"""Queues the agent's task to apply the price file after a run that changed prices.

When the price file has no rows any more, the waiting task is withdrawn.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.agents.agentwork.price_tasks import note_push
from cardsync.agents.agentwork.tasks import end_tasks, enqueue_routine
from cardsync.agents.seller_state.state import locked

TASK = "apply_price_updates"


async def push_prices(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    cycle: str | None = None,
) -> None:
    """Queue a task if the account pushes prices now and no task waits already.

    The account's state row is locked first. `cycle` is the agent's sync cycle that led to the
    prices: an import of prices in that cycle ends the task.
    """
    await locked(session, seller_id)
    # Read the account again under the lock: each change of the account locks the state row first.
    statement = (
        select(Account)
        .where(Account.seller_id == seller_id)
        .execution_options(populate_existing=True)
    )
    account = (await session.execute(statement)).scalar_one()
    if account.entitlements(now).sync_mode == "full":
        # A claimed task does not count as waiting, because the agent began it before these prices.
        # A task with an expired claim is offered again.
        await enqueue_routine(session, seller_id, TASK, {}, now)
    if cycle is not None:
        await note_push(session, seller_id, "cycles", cycle)


async def withdraw(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Cancel the waiting task, because the marketplace has the prices already: the seller imported
    them by hand, or changed them there.
    """
    await end_tasks(session, seller_id, TASK, "cancelled", now)
