"""Spend a credit to sync again inside the cooldown: an idempotency key in; charged once, replayed, or the reason why not.

`decide` is pure; `skip_wait` gathers its facts and applies it under the seller's sync row, so that callers go one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors, limits
from cardsync.credits import ledger
from cardsync.settings import Settings
from cardsync.sync import state as sync_state
from cardsync.sync.cooldown import remaining_seconds, whole_seconds
from cardsync.sync.models import SyncState

Answered = Literal["charged", "replayed", "no_charge_needed", "sync_in_flight"]
Decision = Answered | Literal["mutex_held", "insufficient_balance"]


@dataclass(frozen=True)
class SkipWaitFacts:
    """`request_waits`: a manual request that no cycle has taken yet."""

    charged_before: bool
    lock_held: bool
    lease_is_live: bool
    cooldown_remaining: int
    request_waits: bool
    balance: int


@dataclass(frozen=True)
class SkippedWait:
    status: Answered
    balance: int
    cooldown_remaining: int
    transaction_id: int | None


def decide(facts: SkipWaitFacts) -> Decision:
    if facts.charged_before:
        return "replayed"
    if facts.lock_held:
        return "sync_in_flight"
    if facts.lease_is_live:
        return "mutex_held"
    if facts.cooldown_remaining == 0 or facts.request_waits:
        return "no_charge_needed"
    if facts.balance < limits.SKIP_WAIT_CREDITS:
        return "insufficient_balance"
    return "charged"


async def skip_wait(session: AsyncSession, seller_id: int, key: str, now: datetime, settings: Settings) -> SkippedWait:
    state = await sync_state.locked(session, seller_id)
    # Stale, it runs no more: its manual request waits again and is not sold twice.
    sync_state.drop_stale_lock(state, now, settings)
    balance = await ledger.locked_balance(session, seller_id) or 0
    transaction_id = await ledger.charged_with(session, seller_id, key)
    remaining = remaining_seconds(state.last_pricing_at, timedelta(seconds=settings.sync_cooldown_seconds), now)
    facts = SkipWaitFacts(
        charged_before=transaction_id is not None,
        lock_held=state.lock_kind is not None,
        lease_is_live=sync_state.lease_is_live(state, now),
        cooldown_remaining=remaining,
        request_waits=state.requested_kind is not None,
        balance=balance,
    )
    match decide(facts):
        case "mutex_held":
            raise errors.MutexHeld(_lease_seconds(state, now))
        case "insufficient_balance":
            raise errors.InsufficientBalance
        case "charged":
            sync_state.note_request(state, "full", now)
            transaction_id, balance = await ledger.charge(session, seller_id, key, now)
            return SkippedWait("charged", balance, remaining, transaction_id)
        case status:
            return SkippedWait(status, balance, remaining, transaction_id)


def _lease_seconds(state: SyncState, now: datetime) -> int:
    assert state.lease_expires_at is not None
    return whole_seconds(state.lease_expires_at - now)
