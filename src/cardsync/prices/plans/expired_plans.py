"""Marks waiting plans as expired when their time has passed, with one entry of the activity feed
each, and deletes plans that were decided long ago. A transaction handles a limited number of plans
of one seller.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import each_seller
from cardsync.access.each_seller import AT_ONCE, in_parts
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


async def expire(database: Database, now: datetime) -> int:
    """Mark the expired plans, and return their number."""

    def end(session: AsyncSession, plan: AgentPlan) -> None:
        plan.status, plan.decided_at = "expired", plan.expires_at
        note_expired(session, plan, now)

    is_over = AgentPlan.status.in_(WAITING) & (AgentPlan.expires_at <= now)
    return await each_seller.expire(database, AgentPlan, is_over, end)


async def drop_old(database: Database, before: datetime) -> int:
    """Delete every seller's plans that were decided before the time `before`, and return their
    number.
    """
    values = {"before": before, "most": AT_ONCE, "waiting": list(WAITING)}
    return await in_parts(
        database, lambda session, id: run(session, _DROP, values | {"seller": id})
    )
