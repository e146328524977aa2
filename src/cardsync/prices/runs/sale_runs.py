"""The timer of a seller's sales: creates one run after an edge, which is the start or the end of
sales.

The timer is a row of `work_due`. The seller's state row, which is locked first, stores in
`sales_in_force` the sales that were active when the timer last created a run. If two workers handle
the same edge, the second worker finds the timer set to the next edge. If the run fails,
`sales_in_force` and the timer are reset, and the timer pauses before it creates another run.
"""

from __future__ import annotations

from datetime import datetime

import procrastinate
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import locked
from cardsync.platform import clock
from cardsync.platform.work.jobs import SALES, Work, jobs, mark_due_by, work_of
from cardsync.platform.work.streams import due_of, forget
from cardsync.prices.decisions.on_sale import ended_sales
from cardsync.prices.engine.rules import Sale
from cardsync.prices.inputs.rule_rows import sales_of
from cardsync.prices.runs import reprice, sale_edges


@jobs.task(name="pricing.sales", queue="imports", pass_context=True)
async def begin_sale_runs(context: procrastinate.JobContext, seller_id: int) -> None:
    await work_off(work_of(context), seller_id)


async def set_timer(session: AsyncSession, state: SyncState, now: datetime) -> None:
    """Set the timer after a change of the sales: to now if the change starts or ends a sale, else
    to the next edge.

    The caller has locked `state`.
    """
    sales = await sales_of(session, state.seller_id)
    due_at = now if await _passed(session, state, sales, now) else sale_edges.next_edge(sales, now)
    if due_at is not None:
        await mark_due_by(session, state.seller_id, SALES, due_at)


async def begun_since(
    session: AsyncSession,
    state: SyncState,
    priced_for: datetime,
    now: datetime,
) -> None:
    """Set the timer to now for the sales that started after `priced_for`, the time for which an
    import priced.

    An import that starts again, because it was postponed or its worker was killed, still prices for
    the time of its first start. Such an import overwrites the targets that the run at a sale's
    start has set. The caller has locked `state`.
    """
    sales = await sales_of(session, state.seller_id)
    late = {sale.id for sale in sales if sale.active(now) and not sale.active(priced_for)}
    if late.intersection(state.sales_in_force):
        state.sales_in_force = [id for id in state.sales_in_force if id not in late]
        await session.flush()
        await mark_due_by(session, state.seller_id, SALES, now)


async def _passed(
    session: AsyncSession,
    state: SyncState,
    sales: list[Sale],
    now: datetime,
) -> sale_edges.Trigger | None:
    asked = await ended_sales(session, state.seller_id, now)
    return sale_edges.passed(state.sales_in_force, asked, sales, now)


async def work_off(work: Work, seller_id: int) -> None:
    """Create a run if an edge has passed, and set the timer to the next edge, in one transaction.

    While the account is paused, no run is created and `sales_in_force` stays the same, so the edges
    are found when the account resumes.
    """
    async with work.database.tenant(seller_id) as session:
        state = await locked(session, seller_id)
        due = await due_of(session, seller_id, SALES)
        now = clock.now()
        if due is None or due.at > now:
            return  # another worker was faster
        account = await session.get_one(Account, seller_id, populate_existing=True)
        sales = await sales_of(session, seller_id)
        trigger = await _passed(session, state, sales, now)
        if trigger is not None and not (account.automatic_pricing_paused or account.suspended):
            before, after = set(state.sales_in_force), set(sale_edges.in_force(sales, now))
            edges = {"started": sorted(after - before), "ended": sorted(before - after)}
            state.sales_in_force = sorted(after)
            await reprice.begin_unless_one_waits(session, seller_id, trigger, now, edges)
        await forget(session, seller_id, SALES, due)
        if (next_at := sale_edges.next_edge(sales, now)) is not None:
            await mark_due_by(session, seller_id, SALES, next_at)
