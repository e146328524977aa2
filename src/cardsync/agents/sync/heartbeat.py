"""Answers an agent's heartbeat with the facts about its account.

A heartbeat usually writes nothing. It writes only if something is overdue: then it clears a stale
lock, ends a cancelled cycle whose worker died, or cancels price tasks that the account may no
longer run.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from cardsync.access.caller import Caller
from cardsync.agents.agentwork import price_tasks, tasks
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.sync import cancel
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings


class Beat(NamedTuple):
    has_pending_tasks: bool
    sync_mode: str
    upload_approved: bool


async def heartbeat(database: Database, caller: Caller, now: datetime, settings: Settings) -> Beat:
    state = caller.state
    if sync_state.lock_is_stale(state, now, settings) or cancel.is_left(state, now):
        async with database.tenant(caller.seller_id) as session:
            await cancel.end_left(session, caller.seller_id, now)
            await sync_state.clear_stale_lock(session, caller.seller_id, now, settings)
    allowed = caller.entitlements(now)
    if tasks.lost(state.price_tasks_due_at, allowed.price_tasks, now):
        # The account became read-only by time alone (a trial's end), so no change of the account
        # has cancelled the tasks.
        async with database.tenant(caller.seller_id) as session:
            await price_tasks.cancel_lost(session, caller.seller_id, now)
    waiting = tasks.advertised(
        state.tasks_due_at,
        state.price_tasks_due_at,
        state.agent_kinds,
        allowed.price_tasks,
        state.rollback_until,
        now,
    )
    if waiting and not allowed.paid:
        async with database.tenant(caller.seller_id) as session:
            waiting = await tasks.wait_for_the_unpaid(session, caller, now)
    return Beat(waiting, allowed.sync_mode, allowed.upload_approved)
