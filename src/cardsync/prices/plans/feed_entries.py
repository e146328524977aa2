"""Writes every entry about plans to the activity feed."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import activity
from cardsync.access.caller import Caller
from cardsync.prices.plans.models import AgentPlan

# Undoing a plan undoes the entries of its actions, starting with the last
# (`shop/activity/undo.py`).
UNDO: Final = "plan"
# The actor of changes that no request causes, such as an expiry.
SWEEP: Final = "sweep"


def note_plan(session: AsyncSession, caller: Caller, plan: AgentPlan, now: datetime) -> None:
    """Write a plan's outcome to the feed. The caller has flushed, so the entries of the plan's
    actions have ids. An applied plan can be undone if each of its actions can be undone.
    """
    said = [f"plan {plan.id}: {plan.status}", f"risk {plan.risk}" if plan.risk else ""]
    summary = ", ".join(part for part in (*said, plan.error or "") if part)
    entries = activity.noted_in(session) if plan.status == "applied" else []
    whole = bool(entries) and all(entry.undo is not None for entry in entries)
    undo: dict[str, object] = {"kind": UNDO, "entries": [entry.id for entry in entries]}
    activity.note(
        session,
        caller,
        f"plan.{plan.status}",
        summary,
        now,
        risk=plan.risk or "low",
        outcome=plan.status,
        undo=undo if whole else None,
    )


def note_permission(session: AsyncSession, caller: Caller, summary: str, now: datetime) -> None:
    activity.note(session, caller, "plan.permission_changed", summary, now)


def note_expired(session: AsyncSession, plan: AgentPlan, now: datetime) -> None:
    """Write that a plan expired. The actor is the service, because no request caused it."""
    summary = f"plan {plan.id}: expired" + (f", risk {plan.risk}" if plan.risk else "")
    entry = activity.note_by(session, plan.seller_id, SWEEP, "plan.expired", summary, now)
    entry.risk, entry.outcome = plan.risk or "low", "expired"
