"""Cycle logs: what an agent reports of a cycle in, one row a cycle out, merged by the client's `sync_cycle_id`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.sync import state
from cardsync.sync.models import SyncCycle

CycleId = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class StepLog(msgspec.Struct, kw_only=True):
    name: Annotated[str, msgspec.Meta(max_length=200)]
    status: Literal["success", "failed", "skipped"]
    duration_ms: Milliseconds | None = None
    error: str | None = None


class CycleLog(msgspec.Struct, kw_only=True):
    """The sync log request of the specification."""

    status: Literal["success", "partial", "failed"]
    sync_cycle_id: CycleId | None = None
    steps: Annotated[list[StepLog], msgspec.Meta(max_length=200)] = msgspec.field(default_factory=list)
    agent_version: str | None = None
    platform: str | None = None
    duration_ms: Milliseconds | None = None
    started_at: str | None = None


async def place_cycle(
    session: AsyncSession, seller_id: int, sync_cycle_id: str | None, trigger: str, now: datetime
) -> None:
    """The placeholder of a cycle whose upload came before its log: failed, until the log says otherwise."""
    if sync_cycle_id is None:
        return
    await session.execute(
        text("""
            INSERT INTO sync_cycle (seller_id, sync_cycle_id, status, placeholder, trigger_source, started_at, logged_at)
            VALUES (:seller, :cycle, 'failed', true, :trigger, :now, :now)
            ON CONFLICT (seller_id, sync_cycle_id) WHERE sync_cycle_id IS NOT NULL DO NOTHING
        """),
        {"seller": seller_id, "cycle": sync_cycle_id, "trigger": trigger, "now": now},
    )


async def record_cycle(
    session: AsyncSession, seller_id: int, log: CycleLog, started_at: datetime, now: datetime
) -> None:
    """Insert or update the cycle's row. Only the first log of a cycle moves the lock; a repeated one only updates the row."""
    # The state row first: two logs of one cycle at the same time go one after the other.
    await state.locked(session, seller_id)
    row = None
    if log.sync_cycle_id is not None:
        row = await session.scalar(
            select(SyncCycle).where(SyncCycle.seller_id == seller_id, SyncCycle.sync_cycle_id == log.sync_cycle_id)
        )
    first = row is None or row.placeholder
    trigger = await state.cycle_logged(session, seller_id, log, now) if first else None
    if row is None:
        row = SyncCycle(seller_id=seller_id, sync_cycle_id=log.sync_cycle_id, trigger_source=trigger)
        session.add(row)
    # A cycle that the seller cancelled stays so, whatever its agent made of that.
    row.status = "cancelled" if row.status == "cancelled" else log.status
    row.placeholder = False
    row.trigger_source = row.trigger_source or trigger
    row.steps = [msgspec.to_builtins(step) for step in log.steps]
    row.agent_version, row.platform = log.agent_version, log.platform
    row.duration_ms, row.started_at, row.logged_at = log.duration_ms, started_at, now
