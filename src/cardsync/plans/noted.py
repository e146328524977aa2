"""What the activity feed says of plans. Every row about a plan is written here."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import activity
from cardsync.access.caller import Caller
from cardsync.plans.models import AgentPlan


def note_plan(session: AsyncSession, caller: Caller, plan: AgentPlan, now: datetime) -> None:
    said = [f"plan {plan.id}: {plan.status}", f"risk {plan.risk}" if plan.risk else ""]
    summary = ", ".join(part for part in (*said, plan.error or "") if part)
    activity.note(session, caller, f"plan.{plan.status}", summary, now)


def note_permission(session: AsyncSession, caller: Caller, summary: str, now: datetime) -> None:
    activity.note(session, caller, "plan.permission_changed", summary, now)
