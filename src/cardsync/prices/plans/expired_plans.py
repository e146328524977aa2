"""Marks waiting plans as expired when their time has passed, with one entry of the activity feed
each, and deletes plans that were decided long ago. A transaction handles a limited number of plans
of one seller.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.each_seller import AT_ONCE, in_parts
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform.database.session import Database, run
from cardsync.prices.plans.decide_plan import WAITING
from cardsync.prices.plans.feed_entries import note_expired
from cardsync.prices.plans.models import AgentPlan

_DROP = """
    DELETE FROM agent_plan WHERE seller_id = :seller AND id IN (
        SELECT id FROM agent_plan
         WHERE seller_id = :seller AND NOT (status = ANY(CAST(:waiting AS text[])))
           AND coalesce(decided_at, applied_at, created_at) < :before
         ORDER BY id LIMIT :most)
"""
_ANY_OVER = """
    SELECT EXISTS (SELECT FROM agent_plan
                    WHERE seller_id = :seller AND status = ANY(CAST(:waiting AS text[]))
                      AND expires_at <= :now)
"""


async def expire(database: Database, now: datetime) -> int:
    """Mark the expired plans, and return their number."""
    return await in_parts(database, lambda session, id: _expire_some(session, id, now))


async def _expire_some(session: AsyncSession, seller_id: int, now: datetime) -> int:
    values = {"seller": seller_id, "waiting": list(WAITING), "now": now}
    if not await session.scalar(text(_ANY_OVER), values):
        return 0
    # A member's decision locks this row, too, so a plan ends only once.
    await sync_state.locked(session, seller_id)
    over = await session.scalars(
        select(AgentPlan)
        .where(
            AgentPlan.seller_id == seller_id,
            AgentPlan.status.in_(WAITING),
            AgentPlan.expires_at <= now,
        )
        .order_by(AgentPlan.id)
        .limit(AT_ONCE)
        .execution_options(populate_existing=True)
    )
    plans = over.all()
    for plan in plans:
        plan.status, plan.decided_at = "expired", plan.expires_at
        note_expired(session, plan, now)
    return len(plans)


async def drop_old(database: Database, before: datetime) -> int:
    """Delete every seller's plans that were decided before the time `before`, and return their
    number.
    """
    values = {"before": before, "most": AT_ONCE, "waiting": list(WAITING)}
    return await in_parts(
        database, lambda session, id: run(session, _DROP, values | {"seller": id})
    )
