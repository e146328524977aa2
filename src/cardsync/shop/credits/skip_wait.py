"""Spends a credit to sync again during the cooldown. An idempotency key is charged only once. If
nothing was charged, the answer has the reason.

`decide` is pure. Most callers are not charged; their answer is computed, without a lock, from facts
that were read with their API key. Only if a credit may have to be spent, the seller's sync row is
locked and the facts are read again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller, SellerState
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.sync import cancel as sync_cancel
from cardsync.agents.sync.cooldown import remaining_seconds, whole_seconds
from cardsync.platform import errors
from cardsync.platform.settings import Settings
from cardsync.shop.credits import ledger
from cardsync.shop.errors import IdempotencyKeyRequired, InsufficientBalance
from cardsync.shop.limits import IDEMPOTENCY_KEY_CHARACTERS, SKIP_WAIT_CREDITS

Answered = Literal["charged", "replayed", "no_charge_needed", "sync_in_flight"]
Decision = Answered | Literal["mutex_held", "insufficient_balance"]


@dataclass(frozen=True)
class SkipWaitFacts:
    """The facts that decide whether a credit is spent. `lease_seconds` is the remaining time of the
    lease of a running change of prices.

    `request_waits` is true if a requested sync has not begun yet.
    """

    charged_before: bool
    lock_held: bool
    lease_seconds: int
    cooldown_remaining: int
    request_waits: bool
    balance: int


class SkipWait(msgspec.Struct):
    status: Answered
    """charged: a credit was spent; replayed: the key was charged before; otherwise no charge"""
    balance: int | UnsetType = UNSET
    cooldown_remaining_seconds: int | UnsetType = UNSET
    transaction_id: int | UnsetType | None = UNSET


def decide(facts: SkipWaitFacts) -> Decision:
    if facts.charged_before:
        return "replayed"
    if facts.lock_held:
        return "sync_in_flight"
    if facts.lease_seconds:
        return "mutex_held"
    if facts.cooldown_remaining == 0 or facts.request_waits:
        return "no_charge_needed"
    if facts.balance < SKIP_WAIT_CREDITS:
        return "insufficient_balance"
    return "charged"


_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")


def check_key(key: str, named: str) -> None:
    """Check an idempotency key. Raises IdempotencyKeyRequired if it is blank, InvalidPayload if it
    is invalid.
    """
    if not key.strip():
        raise IdempotencyKeyRequired
    if len(key) > IDEMPOTENCY_KEY_CHARACTERS or not _VISIBLE_ASCII.fullmatch(key):
        raise errors.InvalidPayload(
            f"{named} must be 1 to {IDEMPOTENCY_KEY_CHARACTERS} visible ASCII characters without spaces"
        )


async def skip_wait(
    session: AsyncSession,
    caller: Caller,
    key: str,
    now: datetime,
    settings: Settings,
) -> SkipWait:
    caller.must_be_owner()
    seller_id = caller.seller_id
    balance, transaction_id = await ledger.look_up(session, seller_id, key)
    facts = _facts(caller.state, balance, transaction_id, now, settings)
    # In two cases the facts are read again under the row's lock. The decision depends on the
    # balance, which another charge may have changed; or a stale lock has to be released.
    seen = caller.state
    over = sync_state.lock_is_stale(seen, now, settings) or sync_cancel.is_left(seen, now)
    unsure = over or decide(facts) in ("charged", "insufficient_balance")
    if unsure and not facts.charged_before:
        await sync_cancel.end_left(session, seller_id, now)
        state = await sync_state.locked(session, seller_id)
        # If a sync has stopped without an end, its request waits again, so that it is not charged
        # twice.
        sync_state.drop_stale_lock(state, now, settings)
        balance, transaction_id = await ledger.look_up(session, seller_id, key)
        facts = _facts(state, balance, transaction_id, now, settings)
        if decide(facts) == "charged":
            sync_state.note_request(state, "full", now)
            transaction_id, balance = await ledger.charge(session, seller_id, key, now)
            summary = f"a credit skipped the wait before a sync; {balance} left"
            note(session, caller, "credits.spent", summary, now)
            return SkipWait("charged", balance, facts.cooldown_remaining, transaction_id)
    return _uncharged(facts, transaction_id)


def _facts(
    state: SellerState | SyncState,
    balance: int,
    transaction_id: int | None,
    now: datetime,
    settings: Settings,
) -> SkipWaitFacts:
    lease_is_live = sync_state.lease_is_live(state, now)
    return SkipWaitFacts(
        charged_before=transaction_id is not None,
        lock_held=state.lock_kind is not None,
        lease_seconds=whole_seconds(state.lease_expires_at - now)
        if lease_is_live and state.lease_expires_at
        else 0,
        cooldown_remaining=remaining_seconds(
            state.last_pricing_at,
            timedelta(seconds=settings.sync_cooldown_seconds),
            now,
        ),
        request_waits=state.requested_kind is not None,
        balance=balance,
    )


def _uncharged(facts: SkipWaitFacts, transaction_id: int | None) -> SkipWait:
    match decide(facts):
        case "mutex_held":
            raise errors.MutexHeld(facts.lease_seconds)
        case "insufficient_balance":
            raise InsufficientBalance
        case "sync_in_flight":
            return SkipWait("sync_in_flight")
        case status:
            return SkipWait(status, facts.balance, facts.cooldown_remaining, transaction_id)
