"""Copies a cycle's price events to the cycle's row: the agents' reports of price files that they
imported or could not import.

An event and the cycle's log arrive in either order, so each of them writes all events. Both first
lock the seller's state row, so the later writer sees the earlier change.
"""

from __future__ import annotations

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock

_EVENTS = """
    SELECT id, outcome, row_count, imported_at, step, error, rejected, paused
      FROM repricing_event
     WHERE seller_id = :seller AND sync_cycle_id = :cycle ORDER BY id
"""
_NOTE = """
    UPDATE sync_cycle SET price_events = CAST(:events AS jsonb)
     WHERE seller_id = :seller AND sync_cycle_id = :cycle
"""


async def note_price_events(
    session: AsyncSession,
    seller_id: int,
    sync_cycle_id: str | None,
) -> None:
    """Write the events; do nothing for a cycle without an ID or a row."""
    if sync_cycle_id is None:
        return
    which = {"seller": seller_id, "cycle": sync_cycle_id}
    events = [
        dict(row) | {"imported_at": clock.rfc3339(row["imported_at"])}
        for row in (await session.execute(text(_EVENTS), which)).mappings()
    ]
    if events:
        await session.execute(text(_NOTE), which | {"events": msgspec.json.encode(events).decode()})
