"""Answers GET /sync/pending with a decision and, for a sync, the sync lock and the plan.

Most polls cost one read, as a heartbeat does, and never wait for a locked `sync_state` row. A poll
waits for the row only if it takes the sync lock, or clears a stale lock or a cancelled cycle whose
worker died.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller, SellerState
from cardsync.agents.agentwork.task_kinds import named_kinds
from cardsync.agents.agentwork.tasks import remember_kinds
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import (
    drop_stale_lock,
    lock_is_stale,
    locked,
    refresh,
    take_lock,
)
from cardsync.agents.sync import cancel
from cardsync.agents.sync.decision import (
    Lock,
    SyncDecision,
    SyncFacts,
    decide,
    due_at,
    in_quiet_hours,
)
from cardsync.agents.sync.models import SyncStep
from cardsync.agents.sync.planner import Advertised, Plan, PlanFacts, make_plan, read_capabilities
from cardsync.platform import clock
from cardsync.platform.database.hot_reads import PolledQuery
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings


async def answer_poll(
    database: Database,
    caller: Caller,
    agent_id: str | None,
    capabilities: list[str] | None,
    now: datetime,
    settings: Settings,
) -> SyncDecision:
    """Return the decision for one poll; lock the row only if the poll changes it."""
    said = named_kinds(capabilities)
    if said is not None and said != caller.state.agent_kinds:
        async with database.tenant(caller.seller_id) as session:
            await remember_kinds(session, caller, said)
    decision = decide(facts_of(caller, caller.state, agent_id, now, settings))
    if changes_something(caller.state, decision, agent_id, now, settings):
        async with database.tenant(caller.seller_id) as session:
            advertised = read_capabilities(capabilities)
            return await poll(session, caller, agent_id, advertised, now, settings)
    await keep(database, caller, agent_id, now)
    return repeated(caller.state, decision)


def facts_of(
    caller: Caller,
    state: SellerState | SyncState,
    agent_id: str | None,
    now: datetime,
    settings: Settings,
) -> SyncFacts:
    lock = None
    if state.lock_kind is not None and not lock_is_stale(state, now, settings):
        lock = Lock(
            state.lock_kind,
            state.lock_trigger or "manual",
            state.lock_first_sync,
            state.lock_agent_id,
            # After an upload or a cancellation, the lock's holder must not get its cycle again,
            # because it would run the cycle from the start.
            state.lock_uploaded or state.lock_order_data or state.cancel_requested_at is not None,
        )
    account = caller.account
    minutes = account.sync_interval_minutes or settings.sync_interval_minutes
    return SyncFacts(
        now=now,
        requested_kind=state.requested_kind,
        lock=lock,
        agent_id=agent_id,
        auto_sync_paused=account.auto_sync_paused,
        first_sync_due=state.history_fetched_at is None or account.full_history_requested,
        next_due_at=due_at(
            state.last_pricing_at,
            timedelta(minutes=minutes),
            state.scheduled_failures,
            state.last_failure_at,
            timedelta(seconds=settings.sync_retry_seconds),
        ),
        in_quiet_hours=in_quiet_hours(now, account.quiet_hours, account.time_zone),
    )


def next_sync_at(caller: Caller, now: datetime, settings: Settings) -> datetime | None:
    """Return when the next sync begins. Return None while automatic syncs are paused."""
    facts = facts_of(caller, caller.state, None, now, settings)
    if facts.requested_kind is not None:
        return now
    return None if facts.auto_sync_paused else facts.next_due_at or now


def holds_lock(state: SellerState | SyncState, agent_id: str | None) -> bool:
    return state.lock_kind is not None and agent_id is not None and state.lock_agent_id == agent_id


# Refresh the lock only if it is unchanged since it was read. While another transaction has locked
# the row, write nothing: that transaction or the next poll refreshes the lock.
REFRESH = PolledQuery(
    "refresh_lock",
    """
UPDATE sync_state SET lock_refreshed_at = timestamptz 'epoch' + CAST($3 AS float8) * interval '1 microsecond'
 WHERE seller_id = $1 AND seller_id = (
       SELECT seller_id FROM sync_state
        WHERE seller_id = $1 AND lock_refreshed_at = timestamptz 'epoch' + CAST($2 AS float8) * interval '1 microsecond'
          FOR UPDATE SKIP LOCKED)
RETURNING seller_id
""",
    writes=True,
)


def changes_something(
    state: SellerState,
    decision: SyncDecision,
    agent_id: str | None,
    now: datetime,
    settings: Settings,
) -> bool:
    """Return whether this poll must lock the row (`poll`): to take the sync lock, to clear a stale
    lock, or to end a cancelled cycle.
    """
    takes = decision.action == "sync" and state.lock_kind is None
    return (
        takes
        or lock_is_stale(state, now, settings)
        or cancel.is_left(state, now)
        or _grows_old(state, agent_id, now, settings)
    )


def _grows_old(state: SellerState, agent_id: str | None, now: datetime, settings: Settings) -> bool:
    """Return whether the holder's lock is so old that this poll must refresh it, even if it must
    wait for another transaction.
    """
    if not holds_lock(state, agent_id) or state.uploads_open or state.lock_refreshed_at is None:
        return False
    return now - state.lock_refreshed_at > timedelta(seconds=settings.stale_lock_seconds / 2)


async def keep(database: Database, caller: Caller, agent_id: str | None, now: datetime) -> None:
    """Refresh the lock when its holder polls.

    A refresh is unnecessary while uploads are open: such a lock is never stale, and the end of an
    upload refreshes it.
    """
    state = caller.state
    if (
        holds_lock(state, agent_id)
        and not state.uploads_open
        and state.lock_refreshed_at is not None
    ):
        moments = (clock.microseconds(moment) for moment in (state.lock_refreshed_at, now))
        await database.polled.first_row(caller.seller_id, REFRESH, *moments)


def repeated(state: SellerState, decision: SyncDecision) -> SyncDecision:
    """Add the stored plan, so that the lock's holder gets the same answer as before."""
    return _with_plan(decision, state.lock_plan) if decision.action == "sync" else decision


def _with_plan(decision: SyncDecision, kept_plan: object) -> SyncDecision:
    return replace(
        decision, plan=msgspec.convert(kept_plan, Plan) if kept_plan is not None else None
    )


async def poll(
    session: AsyncSession,
    caller: Caller,
    agent_id: str | None,
    advertised: Advertised | None,
    now: datetime,
    settings: Settings,
) -> SyncDecision:
    """Lock the row and decide again; take the sync lock if a sync begins.

    The lock's holder gets the same answer as before.
    """
    state = await locked(session, caller.seller_id)
    if cancel.is_left(state, now):
        await cancel.end(session, state, now)
    drop_stale_lock(state, now, settings)
    decision = decide(facts_of(caller, state, agent_id, now, settings))
    if holds_lock(state, agent_id):
        refresh(state, now)
    if decision.action == "wait":
        return decision
    if state.lock_kind is not None:
        return _with_plan(decision, state.lock_plan)
    planned = replace(decision, plan=await _plan(session, caller, decision, advertised, now))
    # A cycle whose plan is refused does not begin: its request waits for an agent with the steps.
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
    session: AsyncSession,
    caller: Caller,
    decision: SyncDecision,
    advertised: Advertised | None,
    now: datetime,
) -> Plan | None:
    """Plan the steps, only for sellers who opted in and agents that report their capabilities."""
    if advertised is None or not caller.account.planner_opt_in:
        return None
    query = select(SyncStep).where(SyncStep.seller_id == caller.seller_id)
    return make_plan(
        PlanFacts(
            now=now,
            kind=decision.kind or "full",
            manual=decision.reason == "manual_request",
            read_only=caller.entitlements(now).sync_mode == "read_only",
            advertised=advertised,
            last_successes={
                step.name: step.last_succeeded_at.astimezone(UTC)
                for step in await session.scalars(query)
            },
        )
    )
