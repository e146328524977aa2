"""Applies a cycle's first log to the seller's row: the lock, the schedule and the history flags.

Without a lock, a log may only end a first sync. A log of another cycle than the lock's changes
nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.agentwork.tasks import complete_waiting
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import clear_lock, count_failure
from cardsync.agents.seller_state.sync_kinds import INVENTORY_KINDS, ORDER_KINDS
from cardsync.agents.sync.models import SyncCycle, SyncStep
from cardsync.agents.sync.planner import HISTORY_STEPS, STEPS


def is_of_another(state: SyncState, row: SyncCycle | None, agent_id: str | None) -> bool:
    """Return whether a log belongs to another cycle than the lock's: the agent reports that it does
    not hold the lock, or an upload or a screenshot named the cycle before the lock was taken.
    """
    if state.lock_kind is None or state.lock_taken_at is None:
        return False
    if agent_id is not None and state.lock_agent_id is not None and agent_id != state.lock_agent_id:
        return True
    return row is not None and row.started_at < state.lock_taken_at


async def end_cycle(
    session: AsyncSession,
    state: SyncState,
    status: str,
    results: Mapping[str, str],
    now: datetime,
) -> tuple[str | None, bool]:
    """Apply the log of the newest started cycle, even if its lock has ended.

    Return the cycle's trigger, and whether it is still a first sync.
    """
    trigger = state.cycle_trigger
    first_sync = state.cycle_first_sync
    if first_sync and history_is_fetched(
        status,
        results,
        orders_before=await _orders_fetched(session, state.seller_id),
    ):
        state.history_fetched_at = now
        await complete_waiting(session, state.seller_id, "backfill_orders", now)
        # The next requested first sync must not count the successes of this first sync.
        first_sync = False
        await session.execute(
            text("UPDATE sync_step SET in_first_sync = false WHERE seller_id = :id"),
            {"id": state.seller_id},
        )
        await session.execute(
            text("UPDATE account SET full_history_requested = false WHERE seller_id = :id"),
            {"id": state.seller_id},
        )
    # An inventory cycle that uploaded is ended by its worker, a cancelled cycle by its
    # cancellation.
    by_worker = state.lock_uploaded and state.lock_kind in INVENTORY_KINDS
    if state.lock_kind is not None and state.cancel_requested_at is None and not by_worker:
        _end_by_log(state, status, now)
    state.cycle_trigger = state.lock_trigger
    state.cycle_first_sync = state.lock_first_sync and state.lock_kind in ORDER_KINDS
    return trigger, first_sync


def _end_by_log(state: SyncState, status: str, now: datetime) -> None:
    # An inventory cycle without an upload reports `partial`, which counts as a failure.
    if status == "success":
        state.last_sync_at = now
        if state.lock_kind in INVENTORY_KINDS:
            state.last_pricing_at = now
        if state.lock_trigger == "scheduled" or state.lock_kind in INVENTORY_KINDS:
            state.scheduled_failures = 0
    else:
        count_failure(state, now)
    clear_lock(state)


def history_is_fetched(status: str, results: Mapping[str, str], *, orders_before: bool) -> bool:
    """Return whether this log ends a first sync: the orders arrived, and no step that needs them
    failed.

    A skipped step had no data to send. Orders may also be skipped if they arrived earlier in the
    same first sync (`orders_before`). For a log without steps of our registry, its status decides.
    Pure.
    """
    if not results.keys() & STEPS.keys():
        return status == "success"
    if any(results.get(name) == "failed" for name in HISTORY_STEPS):
        return False
    orders = results.get("fetch_orders")
    return orders == "success" or (orders == "skipped" and orders_before)


async def _orders_fetched(session: AsyncSession, seller_id: int) -> bool:
    """Return whether an earlier log of this first sync reported that the orders arrived."""
    query = select(SyncStep.name).where(
        SyncStep.seller_id == seller_id,
        SyncStep.name == "fetch_orders",
        SyncStep.in_first_sync,
    )
    return await session.scalar(query) is not None
