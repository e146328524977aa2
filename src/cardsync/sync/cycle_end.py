"""What a cycle's first log does to the seller's row: the lock, the schedule, the history flags. The log and the row in, the row changed.

A log without a lock is only recorded, save that it may end a first sync; so is one of another cycle than the lock's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.sync.decision import INVENTORY_KINDS
from cardsync.sync.models import SyncCycle, SyncState, SyncStep
from cardsync.sync.planner import HISTORY_STEPS
from cardsync.sync.state import clear_lock, count_failure


def is_of_another(state: SyncState, row: SyncCycle | None, agent_id: str | None) -> bool:
    """Whether a log that arrives belongs to another cycle than the lock's: the agent says that it is not the lock's holder, or
    its cycle was heard of (by an upload or a screenshot) before the lock was taken."""
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
    *,
    planned: bool,
) -> tuple[str | None, bool]:
    """The log of the newest cycle handed out, whose lock may be over. Returns that cycle's trigger and first_sync."""
    trigger, first_sync = state.cycle_trigger, state.cycle_first_sync
    if first_sync and await _history_fetched(session, state.seller_id, status, results, planned=planned):
        state.history_fetched_at = now
        # What succeeded in this first sync says nothing about the next one that is asked for.
        first_sync = False
        await session.execute(
            text("UPDATE sync_step SET in_first_sync = false WHERE seller_id = :id"), {"id": state.seller_id}
        )
        await session.execute(
            text("UPDATE account SET full_history_requested = false WHERE seller_id = :id"), {"id": state.seller_id}
        )
    # An inventory cycle that uploaded ends with its worker, a cancelled one with its cancellation.
    by_worker = state.lock_uploaded and state.lock_kind in INVENTORY_KINDS
    if state.lock_kind is not None and state.cancel_requested_at is None and not by_worker:
        _end_by_log(state, status, now)
    state.cycle_trigger, state.cycle_first_sync = state.lock_trigger, state.lock_first_sync
    return trigger, first_sync


def _end_by_log(state: SyncState, status: str, now: datetime) -> None:
    # A cycle that uploaded no inventory imported none: partial, it did not complete.
    if status == "success":
        state.last_sync_at = now
        if state.lock_kind in INVENTORY_KINDS:
            state.last_pricing_at = now
        if state.lock_trigger == "scheduled" or state.lock_kind in INVENTORY_KINDS:
            state.scheduled_failures = 0
    else:
        count_failure(state, now)
    clear_lock(state)


async def _history_fetched(
    session: AsyncSession, seller_id: int, status: str, results: Mapping[str, str], *, planned: bool
) -> bool:
    """All steps of the history succeeded. One that a plan left out as fresh counts if it succeeded in this first sync: with windows
    of different lengths there may never be a cycle that runs them all."""
    if not results:
        return status == "success"
    left = {name for name in HISTORY_STEPS if results.get(name) != "success"}
    if not left or not planned or any(results.get(name) != "skipped" for name in left):
        return not left
    query = select(SyncStep.name).where(SyncStep.seller_id == seller_id, SyncStep.in_first_sync)
    return left <= set(await session.scalars(query))
