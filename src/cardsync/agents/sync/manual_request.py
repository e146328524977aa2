"""Requests a sync by hand: refuses it during the cooldown, else stores it for the next poll."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.agentwork.task_kinds import REQUESTED
from cardsync.agents.agentwork.tasks import enqueue_task, waiting_task
from cardsync.agents.errors import Cooldown, MeteredCooldown
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.sync_kinds import merge_kinds
from cardsync.agents.sync.cooldown import meets, remaining_seconds
from cardsync.platform.settings import Settings

BACKFILL = "backfill_orders"


async def request_sync(
    session: AsyncSession,
    caller: Caller,
    kind: str,
    now: datetime,
    settings: Settings,
    *,
    full_history: bool = False,
) -> None:
    """Store a request under the row lock, because a cycle that ends at the same time starts a
    cooldown.

    With `full_history`, the next cycle is a first sync again, and a task is added for an agent that
    runs no cycles. When the cycle or the task is done, the other is unnecessary. Only owners may
    request it. Raises OwnerRequired, MeteredCooldown or Cooldown.
    """
    if full_history:
        caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    if (
        state.requested_kind is None
        or merge_kinds(state.requested_kind, kind) != state.requested_kind
    ):
        _refuse_in_cooldown(state, caller, now, settings)
        sync_state.note_request(state, kind, now)
        note(session, caller, "sync.requested", f"sync: {kind}", now)
    # Otherwise a request waits already, and this request changes nothing.
    if full_history:
        await _ask_for_history(session, caller, now)


def _refuse_in_cooldown(
    state: SyncState,
    caller: Caller,
    now: datetime,
    settings: Settings,
) -> None:
    remaining = remaining_seconds(
        state.last_pricing_at,
        timedelta(seconds=settings.sync_cooldown_seconds),
        now,
    )
    match meets(
        remaining,
        metering=caller.account.credits_metering_enabled,
        paid=caller.entitlements(now).paid,
    ):
        case "metered":
            raise MeteredCooldown(remaining, caller.account.credit_balance)
        case "free":
            raise Cooldown(remaining)


async def _ask_for_history(session: AsyncSession, caller: Caller, now: datetime) -> None:
    asked = text("""
        UPDATE account SET full_history_requested = true
         WHERE seller_id = :id AND NOT full_history_requested RETURNING seller_id
    """)
    if await session.scalar(asked, {"id": caller.seller_id}) is not None:
        note(session, caller, "account.changed", "full_history_requested=true", now)
        if await waiting_task(session, caller.seller_id, BACKFILL, now) is None:
            await enqueue_task(session, caller.seller_id, BACKFILL, {}, now, priority=REQUESTED)
