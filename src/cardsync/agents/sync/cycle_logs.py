"""Records agents' logs of cycles: one row per cycle, identified by the agent's `sync_cycle_id`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.limits import AGENT_CHARACTERS
from cardsync.agents.seller_state.state import locked, refresh
from cardsync.agents.sync.cycle_end import end_cycle, is_of_another
from cardsync.agents.sync.models import SyncCycle
from cardsync.agents.sync.planner import STEPS
from cardsync.agents.sync.price_events import note_price_events
from cardsync.platform import clock
from cardsync.platform.limits import STEP_ERROR_CHARACTERS

# A function that requests the order data that a cycle did not deliver; its last two arguments are
# the cycle's start and the current time. The route passes the function, because this package may
# not import `orders`.
AskForMissing = Callable[[AsyncSession, int, datetime, datetime], Awaitable[None]]
CycleId = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class StepLog(msgspec.Struct, kw_only=True):
    name: Annotated[str, msgspec.Meta(max_length=200)]
    """The name of the step"""
    status: Literal["success", "failed", "skipped"]
    """success, failed or skipped"""
    duration_ms: Milliseconds | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        # A long error is cut, not refused: a refused log would make an agent fail at the end of its
        # cycle.
        self.error = self.error and self.error[:STEP_ERROR_CHARACTERS]


class CycleLog(msgspec.Struct, kw_only=True):
    """The sync log request of the specification. Texts that are longer than their columns
    are cut.
    """

    status: Literal["success", "partial", "failed"]
    """success, partial or failed"""
    sync_cycle_id: CycleId | None = None
    steps: Annotated[list[StepLog], msgspec.Meta(max_length=200)] | None = None
    """The steps of the agent and how each ended"""
    agent_version: str | None = None
    platform: str | None = None
    duration_ms: Milliseconds | None = None
    started_at: str | None = None

    def __post_init__(self) -> None:
        self.agent_version = self.agent_version and self.agent_version[:AGENT_CHARACTERS]
        self.platform = self.platform and self.platform[:AGENT_CHARACTERS]


async def place_cycle(
    session: AsyncSession,
    seller_id: int,
    sync_cycle_id: str | None,
    trigger: str | None,
    now: datetime,
) -> None:
    """Insert the placeholder of a cycle whose upload or screenshot arrived before its log. The
    placeholder counts as failed until the log replaces it.
    """
    if sync_cycle_id is None:
        return
    await session.execute(
        text("""
            INSERT INTO sync_cycle (seller_id, sync_cycle_id, status, placeholder, trigger_source,
                started_at, logged_at)
            VALUES (:seller, :cycle, 'failed', true, :trigger, :now, :now)
            ON CONFLICT (seller_id, sync_cycle_id) WHERE sync_cycle_id IS NOT NULL DO NOTHING
        """),
        {
            "seller": seller_id,
            "cycle": sync_cycle_id,
            "trigger": trigger,
            "now": now,
        },
    )


async def cycle_of(session: AsyncSession, seller_id: int, sync_cycle_id: str) -> SyncCycle | None:
    query = select(SyncCycle).where(
        SyncCycle.seller_id == seller_id, SyncCycle.sync_cycle_id == sync_cycle_id
    )
    return (await session.scalars(query)).one_or_none()


async def record_cycle(
    session: AsyncSession,
    caller: Caller,
    log: CycleLog,
    agent_id: str | None,
    ask_for_missing: AskForMissing,
    now: datetime,
) -> None:
    """Insert or update the cycle's row.

    Only the first log of a cycle changes the lock and requests missing data; a repeated log only
    updates the row. If `started_at` is unreadable, the current time counts as the start.
    """
    started_at = clock.read_moment(log.started_at) or now
    # The state row is locked first, so that two simultaneous logs of one cycle run one after the
    # other.
    state = await locked(session, caller.seller_id)
    refresh(state, now)
    row = await _row_of(session, caller.seller_id, log.sync_cycle_id, started_at)
    # If a step was tried again, its last try counts.
    results = {step.name: step.status for step in log.steps or ()}
    succeeded = {
        name for name, result in results.items() if result == "success"
    } - _succeeded_before(row)
    trigger, first_sync = None, False
    if (row is None or row.placeholder) and log.status != "failed":
        await ask_for_missing(session, caller.seller_id, started_at, now)
    if (row is None or row.placeholder) and not is_of_another(state, row, agent_id):
        trigger, first_sync = await end_cycle(session, state, log.status, results, now)
    await _note_successes(session, caller.seller_id, succeeded, now, first_sync=first_sync)
    if row is None:
        row = SyncCycle(seller_id=caller.seller_id, sync_cycle_id=log.sync_cycle_id)
        session.add(row)
    _fill(row, log, trigger, started_at, now)
    await session.flush()
    await note_price_events(session, caller.seller_id, log.sync_cycle_id)


async def _row_of(
    session: AsyncSession,
    seller_id: int,
    sync_cycle_id: str | None,
    started_at: datetime,
) -> SyncCycle | None:
    """Return the cycle's row by its ID, else the row without an ID that a cancellation wrote after
    this cycle's start.
    """
    if sync_cycle_id is None:
        return None
    if row := await cycle_of(session, seller_id, sync_cycle_id):
        return row
    nameless = select(SyncCycle).where(
        SyncCycle.seller_id == seller_id,
        SyncCycle.sync_cycle_id.is_(None),
        SyncCycle.status == "cancelled",
        SyncCycle.logged_at >= started_at,
        SyncCycle.agent_version.is_(None),
    )
    row = (await session.scalars(nameless.order_by(SyncCycle.id.desc()).limit(1))).one_or_none()
    if row is not None:
        row.sync_cycle_id = sync_cycle_id
        row.placeholder = True
    return row


def _succeeded_before(row: SyncCycle | None) -> set[str]:
    """Return the steps whose success an earlier log of the cycle reported."""
    return {step["name"] for step in row.steps if step["status"] == "success"} if row else set()


def _fill(
    row: SyncCycle,
    log: CycleLog,
    trigger: str | None,
    started_at: datetime,
    now: datetime,
) -> None:
    # A cycle that the seller cancelled stays cancelled, whatever its agent reports.
    row.status = "cancelled" if row.status == "cancelled" else log.status
    row.placeholder = False
    row.trigger_source = row.trigger_source or trigger
    row.steps = [msgspec.to_builtins(step) for step in log.steps or ()]
    row.agent_version = log.agent_version
    row.platform = log.platform
    row.duration_ms = log.duration_ms
    row.started_at = started_at
    row.logged_at = now


async def _note_successes(
    session: AsyncSession,
    seller_id: int,
    names: set[str],
    now: datetime,
    *,
    first_sync: bool,
) -> None:
    """Store the time of each step's success, by which the planner decides whether a step is fresh.
    Steps outside the registry are ignored.
    """
    known = sorted(names & STEPS.keys())
    if not known:
        return
    await session.execute(
        text("""
            INSERT INTO sync_step (seller_id, name, last_succeeded_at, in_first_sync)
            SELECT :seller, name, :now, :first_sync FROM unnest(CAST(:names AS text[])) name
            ON CONFLICT (seller_id, name) DO UPDATE
               SET last_succeeded_at = excluded.last_succeeded_at,
                   in_first_sync = excluded.in_first_sync
             WHERE sync_step.last_succeeded_at <= excluded.last_succeeded_at
        """),
        {
            "seller": seller_id,
            "now": now,
            "first_sync": first_sync,
            "names": known,
        },
    )
