"""Decides whether a seller's agent runs a sync now. Pure.

Precedence: in_progress > manual_request > auto_sync_paused > scheduled > no_sync_needed
(decisions.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from cardsync.agents.sync.planner import Plan


@dataclass(frozen=True)
class Lock:
    """The fields of the sync-in-progress lock that the decision needs."""

    kind: str
    trigger: str
    first_sync: bool
    agent_id: str | None
    uploaded: bool


@dataclass(frozen=True)
class SyncFacts:
    now: datetime
    requested_kind: str | None
    lock: Lock | None
    agent_id: str | None
    auto_sync_paused: bool
    first_sync_due: bool
    next_due_at: datetime | None
    in_quiet_hours: bool = False


@dataclass(frozen=True)
class SyncDecision:
    action: str
    reason: str
    sync_requested: bool
    kind: str | None = None
    first_sync: bool = False
    plan: Plan | None = None


def due_at(
    last_pricing_at: datetime | None,
    interval: timedelta,
    failures: int,
    last_failure_at: datetime | None,
    retry: timedelta,
) -> datetime | None:
    """Return when the next scheduled cycle is due. None means now.

    Consecutive failures double the wait, up to the interval.
    """
    due = last_pricing_at + interval if last_pricing_at else None
    if not failures or last_failure_at is None:
        return due
    # The exponent is capped, because 2^60 minutes exceed a timedelta.
    wait: timedelta = min(retry * 2 ** min(failures - 1, 20), interval)
    return max(due, last_failure_at + wait) if due else last_failure_at + wait


def in_quiet_hours(now: datetime, hours: str | None, time_zone: str) -> bool:
    """Return whether the seller's local time is within the quiet hours, such as `22:00-06:00`. The
    end is excluded, so a span with equal ends is empty.

    Only local times are compared. When the clock changes, a skipped hour therefore needs no special
    case, and a repeated hour is quiet twice.
    """
    if hours is None:
        return False
    start, _, end = hours.partition("-")
    begins = time.fromisoformat(start)
    ends = time.fromisoformat(end)
    wall = now.astimezone(ZoneInfo(time_zone)).time()
    return begins <= wall < ends if begins <= ends else wall >= begins or wall < ends


def decide(facts: SyncFacts) -> SyncDecision:
    requested = facts.requested_kind is not None
    lock = facts.lock
    if lock is not None:
        holder = facts.agent_id is not None and facts.agent_id == lock.agent_id
        if holder and not lock.uploaded:
            # The holder may have lost the answer, so it gets the same answer again.
            manual = lock.trigger == "manual"
            reason = "manual_request" if manual else "scheduled"
            return SyncDecision("sync", reason, manual or requested, lock.kind, lock.first_sync)
        return SyncDecision("wait", "in_progress", requested)
    if facts.requested_kind is not None:
        return SyncDecision(
            "sync",
            "manual_request",
            True,
            facts.requested_kind,
            facts.first_sync_due,
        )
    if facts.auto_sync_paused:
        return SyncDecision("wait", "auto_sync_paused", False)
    due = facts.next_due_at is None or facts.now >= facts.next_due_at
    if due and not facts.in_quiet_hours:
        return SyncDecision("sync", "scheduled", False, "full", facts.first_sync_due)
    return SyncDecision("wait", "no_sync_needed", False)


def phase(
    *,
    lock_held: bool,
    requested: bool,
    uploads_open: int,
    lease_is_live: bool,
    work_phase: str | None,
    cancelling: bool,
    in_review: bool,
    push: str | None,
) -> str:
    """Return `phase` of GET /status.

    `push` is push_queued or pushing, if the account pushes prices at all.
    """
    if cancelling and lease_is_live:
        return "cancelling"
    if lease_is_live and work_phase:
        return work_phase
    if uploads_open:
        return "queued"
    # A cycle of a kind without inventory keeps this phase after its uploads, because its agent
    # still collects data.
    if lock_held:
        return "collecting"
    if in_review:
        return "awaiting_review"
    if push == "pushing":
        return push
    # A requested sync has precedence over prices that wait, because the prices may wait for a
    # seller who imports them by hand.
    if requested:
        return "requested"
    return push or "idle"
