"""Applies or declines a waiting plan after a member's click. The plan is applied only if the rules,
pins and lists of its basis have not changed since the member saw it.

If they have changed, the plan has drifted: it is stored as a new revision, which needs a new click.
Two concurrent clicks apply a plan once: the lock of the seller's state row serializes them.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors
from cardsync.platform.settings import Settings
from cardsync.prices.errors import PlanNotWaiting
from cardsync.prices.loss.risk import Size
from cardsync.prices.plans.actions import kept_actions
from cardsync.prices.plans.basis import drifted
from cardsync.prices.plans.feed_entries import note_plan
from cardsync.prices.plans.models import AgentPlan
from cardsync.prices.plans.new_plans import note_applied, take_over
from cardsync.prices.plans.try_plan import judged

WAITING = ("pending_review", "drifted", "refused_by_limit")
"""Plans in these states wait for a member's click. The click also lifts a limit that refused the
plan.
"""


async def confirm(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    plan_id: int,
    revision: int | None,
    now: datetime,
) -> AgentPlan:
    """Apply the plan if its revision is the one that the member saw. Raises NotFound,
    PlanNotWaiting.
    """
    plan = await _waiting(session, caller, plan_id, now)
    if plan.status in ("applied", "expired"):
        return plan
    if plan.status not in WAITING:
        raise PlanNotWaiting(f"plan {plan_id} is {plan.status}: send it again as a new one")
    if revision is not None and revision != plan.revision:
        # Another click detected the drift, so this member has not seen it.
        return plan
    await _apply(session, caller, settings, plan, now)
    await session.flush()
    note_plan(session, caller, plan, now)
    return plan


async def decline(session: AsyncSession, caller: Caller, plan_id: int, now: datetime) -> AgentPlan:
    """Decline the plan. Raise NotFound, PlanNotWaiting."""
    plan = await _waiting(session, caller, plan_id, now)
    if plan.status in ("declined", "expired"):
        return plan
    if plan.status not in WAITING:
        raise PlanNotWaiting(f"plan {plan_id} is {plan.status}: it cannot be declined")
    plan.status, plan.decided_at, plan.decided_by = "declined", now, caller.actor
    await session.flush()
    note_plan(session, caller, plan, now)
    return plan


async def _waiting(session: AsyncSession, caller: Caller, plan_id: int, now: datetime) -> AgentPlan:
    """Return the plan, locked until the transaction ends. Mark it as expired if its time has
    passed. Raises SessionRequired, NotFound.
    """
    if caller.member_id is None:
        raise errors.SessionRequired
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    plan = await plan_of(session, caller.seller_id, plan_id, lock=True)
    if plan.status in WAITING and plan.expires_at <= now:
        plan.status, plan.decided_at = "expired", plan.expires_at
        await session.flush()
        note_plan(session, caller, plan, now)
    return plan


async def plan_of(
    session: AsyncSession, seller_id: int, plan_id: int, *, lock: bool = False
) -> AgentPlan:
    """Return the plan with this id. Raise NotFound."""
    statement = select(AgentPlan).where(AgentPlan.seller_id == seller_id, AgentPlan.id == plan_id)
    if lock:
        statement = statement.with_for_update()
    plan = await session.scalar(statement.execution_options(populate_existing=True))
    if plan is None:
        raise errors.NotFound(f"there is no plan {plan_id}")
    return plan


async def _apply(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    plan: AgentPlan,
    now: datetime,
) -> None:
    """Apply the plan if nothing has drifted. Otherwise store the drift in the plan, which keeps
    waiting.
    """
    actions, basis = kept_actions(plan.actions), plan.basis
    was = msgspec.convert(plan.size, Size)
    try:
        async with judged(session, caller, actions, now, settings) as found:
            drift = drifted(basis, found.basis, was, found.effect.size)
            if not drift:
                found.attempt.keep()
    except (errors.ServiceUnavailable, errors.MutexHeld):
        raise
    except errors.Problem as e:
        await session.refresh(plan)
        drift = [f"The plan cannot be applied as things are now: {e}."]
        if plan.drift != drift:
            plan.revision += 1
        plan.status, plan.drift, plan.error = "drifted", drift, str(e)
        return
    # An operation may have expired the session's rows.
    await session.refresh(plan)
    plan.drift, plan.error = drift, None
    if drift:
        plan.status, plan.revision = "drifted", plan.revision + 1
        take_over(plan, found.effect.size, found.basis, found.results, found.cards)
        return
    plan.limit_name, plan.clicked = None, True
    plan.decided_at, plan.decided_by = now, caller.actor
    await note_applied(session, caller, plan, found, now)
