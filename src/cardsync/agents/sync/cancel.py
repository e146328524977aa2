"""Cancels a sync on the seller's request: clears the lock immediately, or records a cancellation
for the worker that is writing.

The worker notices the cancellation at its next boundary (`state.hold_lease`) and completes it
(`end_held`). If the worker has died, the next poll, heartbeat, cancel, upload or worker completes
it (`end_left`). No worker resumes a cancelled import.

After the server has priced an upload, the lock is clear, and an agent with a browser imports the
prices at the marketplace. The seller can still cancel this cycle, because its agent asks before
each batch whether the cycle is cancelled.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note, note_by
from cardsync.access.caller import Caller, SellerState
from cardsync.agents.errors import NoSyncInProgress
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.exported import end_pricing, fingerprint
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.sync.models import SyncCycle
from cardsync.platform import clock
from cardsync.platform.database.read_sources import Source, rows_as, rows_of
from cardsync.platform.value_types import Values
from cardsync.platform.work.jobs import Work
from cardsync.platform.work.metrics import UPLOADS

# The lease holders that a cancellation stops: an import, and a pricing of the stored cards, either
# after an import or on request.
REPRICE = "reprice"
_WORKERS = ("sync", REPRICE)
# An agent gives up a cycle after this time.
_AGENT_WORKS = timedelta(hours=24)
# The cycle of the newest upload, if the upload is done, its agent drives a browser and the agent
# has not logged the cycle. An agent that drives a browser reports a turn, even an empty turn. A
# person who imports the files by hand would not notice a cancellation.
_AT_AGENT = """
    SELECT c.id FROM sync_cycle c
      JOIN upload u ON u.seller_id = c.seller_id AND u.sync_cycle_id = c.sync_cycle_id
     WHERE c.seller_id = :seller AND u.seller_id = :seller AND u.state = 'done'
       AND u.id = (SELECT max(id) FROM upload WHERE seller_id = :seller AND stream = 'inventory')
       AND u.received_at > :since AND c.placeholder AND c.status <> 'cancelled'
       AND EXISTS (SELECT 1 FROM agent_seen WHERE seller_id = :seller AND your_turn IS NOT NULL)
"""


def is_left(state: SellerState | SyncState, now: datetime) -> bool:
    """Return whether a recorded cancellation is not completed although the lease is free: its
    worker died.
    """
    return state.cancel_requested_at is not None and not sync_state.lease_is_live(state, now)


async def cancel_sync(
    session: AsyncSession,
    caller: Caller,
    now: datetime,
) -> Literal["cancelled", "cancelling"]:
    """Return `cancelled` if everything is cancelled, `cancelling` while a worker continues to its
    next boundary. Raises NoSyncInProgress.
    """
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    # A running rollback or preview is not part of the sync: its lease stays, and the lock is
    # cleared immediately.
    working = state.lease_holder in _WORKERS and sync_state.lease_is_live(state, now)
    if state.lock_kind is None and state.cancel_requested_at is None and not working:
        await _cancel_at_agent(session, caller, now)
        return "cancelled"
    if state.cancel_requested_at is None:
        note(session, caller, "sync.cancel_requested", "sync cancellation requested", now)
    if working:
        state.cancel_requested_at = state.cancel_requested_at or now
        return "cancelling"
    await end(session, state, now)
    return "cancelled"


async def is_at_agent(source: Source, seller_id: int, now: datetime) -> bool:
    """Return whether an agent still imports prices after the server priced its upload."""
    return bool(await rows_of(source)(_AT_AGENT, _at_agent(seller_id, now)))


async def is_cycle_cancelled(source: Source, seller_id: int, sync_cycle_id: str) -> bool:
    """Return whether the seller cancelled the cycle of an agent."""
    tail = "AND sync_cycle_id = :cycle"
    found = await rows_as(source, SyncCycle, seller_id, tail, cycle=sync_cycle_id)
    return [one.status for one in found] == ["cancelled"]


async def _cancel_at_agent(session: AsyncSession, caller: Caller, now: datetime) -> None:
    """Cancel the cycle whose prices an agent imports. Raises NoSyncInProgress."""
    found = await rows_of(session)(_AT_AGENT, _at_agent(caller.seller_id, now))
    if not found:
        raise NoSyncInProgress
    cycle = await session.get_one(SyncCycle, (caller.seller_id, found[0][0]))
    cycle.status = "cancelled"
    text_of_it = "the sync was canceled; the sync app stops before its next batch of prices"
    note(session, caller, "sync.cancelled", text_of_it, now)


def _at_agent(seller_id: int, now: datetime) -> Values:
    return {"seller": seller_id, "since": now - _AGENT_WORKS}


async def end_left(session: AsyncSession, seller_id: int, now: datetime) -> bool:
    """Complete the cancellation that a dead worker left open; return whether there was such a
    cancellation.
    """
    state = await sync_state.locked(session, seller_id)
    if not is_left(state, now):
        return False
    await end(session, state, now)
    return True


async def end_held(work: Work, lease: sync_state.Lease) -> None:
    """Complete the cancellation of this worker's run; its committed changes remain."""
    async with work.database.tenant(lease.seller_id) as session:
        await end(session, await sync_state.own_state(session, lease), clock.now())


async def end(session: AsyncSession, state: SyncState, now: datetime) -> None:
    """Cancel all unfinished work, release lock and lease, and write the cancelled cycle. The caller
    has locked the row, and no other worker writes.

    Committed changes remain. A waiting request remains, too: it is newer than the cancelled cycle,
    whose own request was consumed when the cycle took it.
    """
    if state.lease_holder == REPRICE:
        await _cancel_reprice(session, state.seller_id, now)
    if _is_of_a_sync(state):
        await _end_sync(session, state, now)
    state.cancel_requested_at = None
    if state.lease_holder in _WORKERS or not sync_state.lease_is_live(state, now):
        # The token is removed, so that a worker that only seemed dead cannot commit any more.
        state.lease_holder = state.lease_token = state.lease_expires_at = state.work_phase = None
        if state.export_fingerprint is None:
            await end_pricing(session, state, await fingerprint(session, state.seller_id))


def _is_of_a_sync(state: SyncState) -> bool:
    """Return whether the lock belongs to the cancelled work. A pricing on demand has no lock; a
    lock that was taken after its cancellation belongs to other work.
    """
    if state.lease_holder != REPRICE or state.cancel_requested_at is None:
        return True
    return state.lock_taken_at is not None and state.lock_taken_at <= state.cancel_requested_at


async def _end_sync(session: AsyncSession, state: SyncState, now: datetime) -> None:
    cancelled = await _cancel_uploads(session, state.seller_id, now)
    if state.review_upload_id in cancelled:
        state.review_upload_id = None
    await _write_cycle(
        session,
        state,
        [cycle for cycle in cancelled.values() if cycle is not None],
        now,
    )
    sync_state.drop_cancelled_lock(state, now)
    summary = f"sync canceled, with {len(cancelled)} unfinished uploads"
    note_by(session, state.seller_id, "sync", "sync.cancelled", summary, now)


async def _cancel_reprice(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Cancel the run for which the lease was taken: the oldest running run without an upload."""
    run_id = await session.scalar(
        text("""
            UPDATE price_run
               SET state = 'cancelled', finished_at = :now,
                   summary = jsonb_set(summary, '{changed}', (
                       SELECT CAST(CAST(count(*) AS text) AS jsonb) FROM price_change c
                        WHERE c.seller_id = :seller AND c.run_id = price_run.id))
             WHERE seller_id = :seller AND id = (SELECT min(id) FROM price_run
                                                  WHERE seller_id = :seller AND state = 'running'
                                                    AND upload_id IS NULL)
            RETURNING id
        """),
        {"seller": seller_id, "now": now},
    )
    if run_id is not None:
        summary = f"pricing run {run_id} canceled"
        note_by(session, seller_id, "pricing", "pricing.cancelled", summary, now)


async def _cancel_uploads(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
) -> dict[int, str | None]:
    """Cancel every open inventory upload and its pricing run; return the uploads' IDs with their
    cycles.
    """
    ended = await session.execute(
        text("""
            WITH ended AS (
                UPDATE upload SET state = 'cancelled', finished_at = :now
                 WHERE seller_id = :seller AND stream = 'inventory'
                   AND state IN ('queued', 'processing')
                RETURNING id, sync_cycle_id
            ), runs AS (
                UPDATE price_run SET state = 'cancelled', finished_at = :now
                 WHERE seller_id = :seller AND upload_id IN (SELECT id FROM ended)
            )
            SELECT id, sync_cycle_id FROM ended
        """),
        {"seller": seller_id, "now": now},
    )
    cancelled: dict[int, str | None] = {row.id: row.sync_cycle_id for row in ended}
    UPLOADS.labels("cancelled").inc(len(cancelled))
    return cancelled


async def _write_cycle(
    session: AsyncSession,
    state: SyncState,
    cycles: list[str],
    now: datetime,
) -> None:
    """Mark the cycles that the uploads named as cancelled; if the uploads named no cycle, add a
    cancelled cycle.
    """
    known = await session.scalars(
        text("""
            UPDATE sync_cycle SET status = 'cancelled', logged_at = :now
             WHERE seller_id = :seller AND sync_cycle_id = ANY(:cycles) RETURNING id
        """),
        {"seller": state.seller_id, "cycles": cycles, "now": now},
    )
    if not known.all():
        began = state.lock_taken_at or now
        trigger = state.lock_trigger or state.cycle_trigger
        session.add(
            SyncCycle(
                seller_id=state.seller_id,
                status="cancelled",
                trigger_source=trigger,
                started_at=began,
                logged_at=now,
            )
        )
