"""A heartbeat: the agent's caller in, what it is told about its account out.

The steady state writes nothing. A heartbeat writes where time left something undone: it clears a
stale lock, ends a cancelled cycle whose worker died, and cancels price tasks that the account may
no longer run.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from cardsync.access.caller import Caller
from cardsync.agentwork import tasks
from cardsync.database.session import Database
from cardsync.seller_state import state as sync_state
from cardsync.settings import Settings
from cardsync.sync import cancel


class Beat(NamedTuple):
    has_pending_tasks: bool
    sync_mode: str
    upload_approved: bool


async def heartbeat(database: Database, caller: Caller, now: datetime, settings: Settings) -> Beat:
    if sync_state.lock_is_stale(caller, now, settings) or cancel.is_left(caller, now):
        async with database.tenant(caller.seller_id) as session:
            await cancel.end_left(session, caller.seller_id, now)
            await sync_state.clear_stale_lock(session, caller.seller_id, now, settings)
    allowed = caller.entitlements(now)
    if tasks.lost(caller.price_tasks_due_at, allowed.price_tasks, now):
        # Time made the account read-only (a trial's end): no change of it cancelled them.
        async with database.tenant(caller.seller_id) as session:
            await tasks.cancel_lost(session, caller.seller_id, now)
    waiting = tasks.advertised(
        caller.tasks_due_at,
        caller.price_tasks_due_at,
        caller.agent_kinds,
        allowed.price_tasks,
        now,
    )
    return Beat(waiting, allowed.sync_mode, allowed.upload_approved)
