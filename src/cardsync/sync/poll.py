"""GET /sync/pending: what stands in the seller's row in, the decision out, and with it the sync lock and the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.accounts.caller import Caller
from cardsync.settings import Settings
from cardsync.sync.decision import Lock, SyncDecision, SyncFacts, decide, due_at, in_quiet_hours
from cardsync.sync.models import SyncState, SyncStep
from cardsync.sync.planner import Advertised, Plan, PlanFacts, make_plan
from cardsync.sync.state import drop_stale_lock, lock_is_stale, locked, refresh, take_lock


def facts_of(
    caller: Caller, state: Caller | SyncState, agent_id: str | None, now: datetime, settings: Settings
) -> SyncFacts:
    lock = None
    if state.lock_kind is not None and not lock_is_stale(state, now, settings):
        lock = Lock(
            state.lock_kind,
            state.lock_trigger or "manual",
            state.lock_first_sync,
            state.lock_agent_id,
            # Who is told once more to run a cycle that is being cancelled would begin it anew.
            state.lock_uploaded or state.cancel_requested_at is not None,
        )
    minutes = caller.sync_interval_minutes or settings.sync_interval_minutes
    return SyncFacts(
        now=now,
        requested_kind=state.requested_kind,
        lock=lock,
        agent_id=agent_id,
        auto_sync_paused=caller.auto_sync_paused,
        first_sync_due=state.history_fetched_at is None or caller.full_history_requested,
        next_due_at=due_at(
            state.last_pricing_at,
            timedelta(minutes=minutes),
            state.scheduled_failures,
            state.last_failure_at,
            timedelta(seconds=settings.sync_retry_seconds),
        ),
        in_quiet_hours=in_quiet_hours(now, caller.quiet_hours, caller.time_zone),
    )


def holds_lock(state: Caller | SyncState, agent_id: str | None) -> bool:
    return state.lock_kind is not None and agent_id is not None and state.lock_agent_id == agent_id


def changes_something(
    caller: Caller, decision: SyncDecision, agent_id: str | None, now: datetime, settings: Settings
) -> bool:
    """Whether this poll has to go through `poll`: it takes the lock, refreshes its own, or clears a stale one."""
    return decision.action == "sync" or holds_lock(caller, agent_id) or lock_is_stale(caller, now, settings)


async def poll(
    session: AsyncSession,
    caller: Caller,
    agent_id: str | None,
    advertised: Advertised | None,
    now: datetime,
    settings: Settings,
) -> SyncDecision:
    """Decide again on the row as it is now, under its lock. Its holder hears what it was told when it took the sync lock."""
    state = await locked(session, caller.seller_id)
    drop_stale_lock(state, now, settings)
    decision = decide(facts_of(caller, state, agent_id, now, settings))
    if holds_lock(state, agent_id):
        refresh(state, now)
    if decision.action == "wait":
        return decision
    if state.lock_kind is not None:
        told = state.lock_plan
        return replace(decision, plan=msgspec.convert(told, Plan) if told is not None else None)
    planned = replace(decision, plan=await _plan(session, caller, decision, advertised, now))
    # A cycle whose plan is refused does not begin: a request waits on, for an agent that can do it.
    if planned.plan is None or planned.plan.error is None:
        _begin(state, planned, agent_id, now)
    return planned


def _begin(state: SyncState, decision: SyncDecision, agent_id: str | None, now: datetime) -> None:
    manual = decision.reason == "manual_request"
    trigger = "manual" if manual else "scheduled"
    take_lock(state, decision.kind or "full", trigger, decision.first_sync, agent_id, now)
    if decision.plan is not None:
        state.lock_plan = msgspec.to_builtins(decision.plan)
    if manual:
        state.requested_kind = state.requested_at = None


async def _plan(
    session: AsyncSession, caller: Caller, decision: SyncDecision, advertised: Advertised | None, now: datetime
) -> Plan | None:
    """Only for sellers who opted in, and agents that say what they can do."""
    if advertised is None or not caller.planner_opt_in:
        return None
    query = select(SyncStep).where(SyncStep.seller_id == caller.seller_id)
    return make_plan(
        PlanFacts(
            now=now,
            kind=decision.kind or "full",
            manual=decision.reason == "manual_request",
            read_only=caller.entitlements(now).sync_mode == "read_only",
            advertised=advertised,
            last_successes={step.name: step.last_succeeded_at.astimezone(UTC) for step in await session.scalars(query)},
        )
    )
