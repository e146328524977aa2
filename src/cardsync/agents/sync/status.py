"""Shows the phase and the progress of a seller's sync.

A stale or cancelled cycle counts as ended, even before a process has cleared it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from cardsync.access.caller import Caller
from cardsync.agents.agentwork import price_tasks
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.sync import cancel
from cardsync.agents.sync.decision import phase
from cardsync.platform.database.read_sources import Source
from cardsync.platform.settings import Settings

# Returns whether a pricing run needs review. The route passes this function, because this package
# may not import `pricing`. The function is called only for an account that pushes prices.
RunWaits = Callable[[Source, int], Awaitable[bool]]


class SyncStatus(NamedTuple):
    """`progress` is the finished part and the total while a worker writes, else None."""

    in_progress: bool
    sync_mode: str
    phase: str
    progress: tuple[int, int] | None


async def status_of(
    source: Source,
    caller: Caller,
    run_waits: RunWaits,
    now: datetime,
    settings: Settings,
) -> SyncStatus:
    allowed = caller.entitlements(now)
    state = caller.state
    cancelled = cancel.is_left(state, now)
    held = (
        state.lock_kind is not None
        and not cancelled
        and not sync_state.lock_is_stale(state, now, settings)
    )
    live = sync_state.lease_is_live(state, now)
    full = allowed.sync_mode == "full"
    current = phase(
        lock_held=held,
        requested=state.requested_kind is not None,
        uploads_open=0 if cancelled else state.uploads_open,
        lease_is_live=live,
        work_phase=state.work_phase,
        cancelling=state.cancel_requested_at is not None,
        in_review=state.review_upload_id is not None
        or (full and await run_waits(source, caller.seller_id)),
        push=await price_tasks.push_of(source, caller.seller_id, now) if full else None,
    )
    progress = (state.work_done, state.work_total) if live and state.work_total else None
    return SyncStatus(held, allowed.sync_mode, current, progress)
