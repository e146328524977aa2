"""A manual request for a sync: refused inside the cooldown where that binds, else noted for the next poll."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors
from cardsync.accounts.caller import Caller
from cardsync.settings import Settings
from cardsync.sync import state as sync_state
from cardsync.sync.cooldown import meets, remaining_seconds
from cardsync.sync.decision import merge_kinds


async def request_sync(session: AsyncSession, caller: Caller, kind: str, now: datetime, settings: Settings) -> None:
    """Under the row lock: a cycle that ends meanwhile starts its cooldown before or after, never beside."""
    state = await sync_state.locked(session, caller.seller_id)
    if state.requested_kind is not None and merge_kinds(state.requested_kind, kind) == state.requested_kind:
        return  # it waits already: asked again, it is answered again
    remaining = remaining_seconds(state.last_pricing_at, timedelta(seconds=settings.sync_cooldown_seconds), now)
    match meets(remaining, metering=caller.credits_metering_enabled, paid=caller.entitlements(now).paid):
        case "metered":
            raise errors.MeteredCooldown(remaining, caller.credit_balance)
        case "free":
            raise errors.Cooldown(remaining)
    sync_state.note_request(state, kind, now)
