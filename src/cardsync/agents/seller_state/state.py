"""Changes a seller's row of `sync_state`: requests, the lock, the lease. Each function is one step
of the protocol.

Every session that a function takes is in the seller's scope. Callers pass the time. The row is
changed under its row lock or by one statement.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import SellerState
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.sync_kinds import (
    INVENTORY_KINDS,
    ORDER_KINDS,
    is_stale,
    merge_kinds,
)
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.settings import Settings
from cardsync.platform.work.piece import CancelRequested, LeaseLost

# Every lease is shorter than this: a lease that ends later was taken by a host with a wrong clock.
LONGEST_LEASE = timedelta(minutes=5)

_HOLD: Final = queries_of(__package__)["hold"]


def lease_is_live(state: SellerState | SyncState, now: datetime) -> bool:
    ends = state.lease_expires_at
    return ends is not None and now < ends <= now + LONGEST_LEASE


def lock_is_stale(state: SellerState | SyncState, now: datetime, settings: Settings) -> bool:
    # A cancelled cycle does not become stale: its cancellation is completed instead, and its
    # request is not offered again.
    if state.lock_kind is None or state.cancel_requested_at is not None:
        return False
    return is_stale(
        state.lock_refreshed_at,
        lease_is_live=lease_is_live(state, now),
        uploads_open=state.uploads_open,
        now=now,
        stale_after=timedelta(seconds=settings.stale_lock_seconds),
    )


async def locked(session: AsyncSession, seller_id: int) -> SyncState:
    """Lock the seller's row until the transaction ends."""
    statement = select(SyncState).where(SyncState.seller_id == seller_id).with_for_update()
    return (await session.execute(statement.execution_options(populate_existing=True))).scalar_one()


def clear_lock(state: SyncState) -> None:
    state.lock_kind = state.lock_trigger = state.lock_agent_id = None
    state.lock_taken_at = state.lock_refreshed_at = None
    state.lock_first_sync = state.lock_uploaded = state.lock_order_data = False
    state.lock_plan = None


def count_failure(state: SyncState, now: datetime) -> None:
    """Count a failed scheduled cycle once, even if several of its uploads fail."""
    counted = (
        state.last_failure_at
        and state.lock_taken_at
        and state.last_failure_at >= state.lock_taken_at
    )
    if state.lock_trigger == "scheduled" and not counted:
        state.scheduled_failures += 1
        state.last_failure_at = now


def drop_cancelled_lock(state: SyncState, now: datetime) -> None:
    """Clear a cancelled cycle and its uploads. The cycle counts as failed if it was scheduled, and
    its request is not offered again.
    """
    count_failure(state, now)
    clear_lock(state)
    state.uploads_open = 0
    state.cancel_requested_at = None


def drop_stale_lock(state: SyncState, now: datetime, settings: Settings) -> None:
    """Clear a stale cycle: it counts as failed if it was scheduled, and the manual request that it
    had taken is offered again.
    """
    if not lock_is_stale(state, now, settings):
        return
    count_failure(state, now)
    # The cycle's request is merged with a newer request. The request of an inventory cycle that
    # uploaded is done: its worker ends the cycle.
    done = state.lock_uploaded and state.lock_kind in INVENTORY_KINDS
    if state.lock_trigger == "manual" and state.lock_kind and not done:
        newer = state.requested_kind
        state.requested_kind = merge_kinds(state.lock_kind, newer) if newer else state.lock_kind
    clear_lock(state)


async def clear_stale_lock(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    settings: Settings,
) -> None:
    drop_stale_lock(await locked(session, seller_id), now, settings)


def take_lock(
    state: SyncState,
    kind: str,
    trigger: str,
    first_sync: bool,
    agent_id: str | None,
    now: datetime,
) -> None:
    """Take the lock for a cycle that begins now. The caller stores the plan in `lock_plan`."""
    state.lock_kind = kind
    state.lock_trigger = trigger
    state.lock_agent_id = agent_id
    state.lock_first_sync = first_sync
    state.lock_uploaded = state.lock_order_data = False
    state.lock_taken_at = state.lock_refreshed_at = now
    state.cycle_trigger = trigger
    state.cycle_first_sync = first_sync and kind in ORDER_KINDS


def note_request(state: SyncState, kind: str, now: datetime) -> None:
    """Store a manual request for the next poll. If a request waits already, `full` has precedence,
    else the new kind.
    """
    state.requested_kind = merge_kinds(state.requested_kind, kind)
    state.requested_at = now


def refresh(state: SyncState, now: datetime) -> None:
    if state.lock_kind is not None:
        state.lock_refreshed_at = now


def order_data_came(state: SyncState, now: datetime) -> None:
    """Refresh the lock after order data arrived; after that, its holder is not offered the cycle
    again.
    """
    refresh(state, now)
    state.lock_order_data = state.lock_kind is not None


async def refresh_lock(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Refresh the lock after activity of its cycle; do nothing without a lock."""
    await session.execute(
        text(
            "UPDATE sync_state SET lock_refreshed_at = :now WHERE seller_id = :id AND lock_kind IS NOT NULL"
        ),
        {"now": now, "id": seller_id},
    )


async def upload_accepted(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    settings: Settings,
) -> str:
    """Count an accepted upload as open and return the lock's trigger. Without a lock, take it: old
    agents and people who use curl upload without a poll.
    """
    state = await locked(session, seller_id)
    drop_stale_lock(state, now, settings)
    if state.lock_kind is None:
        take_lock(state, "full", "manual", False, None, now)
    state.lock_uploaded = True
    state.lock_refreshed_at = now
    state.uploads_open += 1
    return state.lock_trigger or "manual"


@dataclass(frozen=True)
class Lease:
    """The right to write a seller's prices, until it expires or is taken over."""

    seller_id: int
    token: str
    seconds: float


async def take_lease(
    session: AsyncSession,
    seller_id: int,
    holder: str,
    now: datetime,
    seconds: float,
) -> Lease | None:
    """Take the lease; return None while another holder's lease is valid or a cancellation is not
    completed.

    An expired lease is taken over, and so is a lease whose end is impossibly late.
    """
    token = str(uuid.uuid4())
    taken = await session.scalar(
        text("""
            UPDATE sync_state
               SET lease_holder = :holder, lease_token = CAST(:token AS uuid),
                 lease_expires_at = :expires,
                   work_phase = CASE WHEN :holder = 'sync' THEN 'importing'
                       WHEN :holder = 'reprice' THEN 'repricing' END,
                   work_done = 0, work_total = 0
             WHERE seller_id = :id AND (lease_expires_at IS NULL OR lease_expires_at <= :now
                    OR lease_expires_at > :longest)
               AND cancel_requested_at IS NULL
            RETURNING seller_id
        """),
        {
            "holder": holder,
            "token": token,
            "expires": now + timedelta(seconds=seconds),
            "longest": now + LONGEST_LEASE,
            "id": seller_id,
            "now": now,
        },
    )
    return Lease(seller_id, token, seconds) if taken is not None else None


async def hold_lease(
    session: AsyncSession,
    lease: Lease,
    now: datetime,
    *,
    phase: str | None = None,
    done: int | None = None,
    total: int | None = None,
    after: int | None = None,
) -> None:
    """Renew and check the lease and store the progress, as the last statement before a commit. With
    `done`, the transaction has changed cards, so the export must not answer 304 from the stored
    fingerprint until a pricing ends.

    Raises LeaseLost if another holder has the lease, or if the stored progress is not `after`
    because the database lost one of this worker's commits. Raises CancelRequested if the seller
    cancelled. In both cases the caller's transaction must roll back.
    """
    row = (
        await session.execute(
            text(_HOLD),
            {
                "expires": now + timedelta(seconds=lease.seconds),
                "now": now,
                "phase": phase,
                "done": done,
                "total": total,
                "after": after,
                "id": lease.seller_id,
                "token": lease.token,
            },
        )
    ).first()
    # `work_done` is compared in SET, because WHERE would compare it before the row is locked.
    if row is None or row.work_done < 0:
        raise LeaseLost
    if row.cancel_requested_at is not None:
        raise CancelRequested


async def check_lease(session: AsyncSession, lease: Lease) -> None:
    """Check the lease and the cancellation in the middle of a transaction, without writing.

    Raises LeaseLost or CancelRequested.
    """
    query = text(
        "SELECT lease_token = CAST(:token AS uuid), cancel_requested_at FROM sync_state WHERE seller_id = :id"
    )
    row = (await session.execute(query, {"id": lease.seller_id, "token": lease.token})).first()
    if row is None or not row[0]:
        raise LeaseLost
    if row[1] is not None:
        raise CancelRequested


async def own_state(session: AsyncSession, lease: Lease) -> SyncState:
    """Lock and return the seller's state row. This row must be locked before the upload's row,
    because confirm and discard lock in this order. Raises LeaseLost if another worker has taken the
    lease.
    """
    state = await locked(session, lease.seller_id)
    if state.lease_token != lease.token:
        raise LeaseLost
    return state


async def release_lease(session: AsyncSession, lease: Lease) -> None:
    """Release the lease. A recorded cancellation stays recorded: only `cancel.end` removes it,
    together with the work that was cancelled.
    """
    await session.execute(
        text("""
            UPDATE sync_state
               SET lease_holder = NULL, lease_token = NULL, lease_expires_at = NULL,
                 work_phase = NULL
             WHERE seller_id = :id AND lease_token = CAST(:token AS uuid)
        """),
        {"id": lease.seller_id, "token": lease.token},
    )


async def upload_finished(
    session: AsyncSession,
    seller_id: int,
    outcome: str,
    now: datetime,
) -> None:
    """Count one open upload less and refresh the cycle's lock. `outcome` is completed, failed or
    in_review.

    The inventory cycle's lock is cleared when its last upload is finished. Only a completed upload
    counts as a sync.
    """
    state = await locked(session, seller_id)
    state.uploads_open = max(state.uploads_open - 1, 0)
    refresh(state, now)
    if outcome == "completed":
        state.last_sync_at = state.last_pricing_at = now
        state.scheduled_failures = 0
    else:
        count_failure(state, now)
    if state.uploads_open == 0 and state.lock_uploaded and state.lock_kind in INVENTORY_KINDS:
        clear_lock(state)
