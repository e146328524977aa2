"""Requests, shows and cancels a seller's rollbacks, and ends them by an agent's reports.

A seller has at most one open rollback. The rollback's row has its state. The seller's state row,
which is locked first, has the time until which a rollback is served instead of the price file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.agentwork.tasks import end_tasks
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.models import SyncState
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.value_types import JsonObject
from cardsync.platform.work.jobs import mark_due_by
from cardsync.prices.errors import NotCancellable, RollbackOpen
from cardsync.prices.limits import ROLLBACK_DIFF_SHOWN, ROLLBACKS_SHOWN
from cardsync.prices.models import PriceRollback
from cardsync.prices.rollback.scope import Scope, diff_of

STREAM = "rollback"
OPEN = ("requested", "ready", "served")
Ending = Literal["applied", "failed", "expired", "cancelled"]
Diff = list[JsonObject]

_KEPT_DIFF = f"""
    SELECT c.id, c.marketplace_id, c.product_name, c.set_name, c.condition_label,
           r.current_price, r.target_price, r.price
      FROM price_rollback_card r JOIN card c ON c.seller_id = :seller AND c.id = r.card_id
     WHERE r.seller_id = :seller AND r.rollback_id = :id
         ORDER BY c.marketplace_id LIMIT {ROLLBACK_DIFF_SHOWN}
"""


async def ask(
    session: AsyncSession,
    caller: Caller,
    scope: Scope,
    cards: int,
    now: datetime,
    lasts: timedelta,
) -> tuple[PriceRollback, bool]:
    """Request a rollback. Return it and whether it is new. An open rollback of the same scope is
    returned again. Raises MutexHeld, RollbackOpen.
    """
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    waiting = await _waiting(session, state, now)
    if waiting is not None:
        if waiting.scope != scope:
            raise RollbackOpen(
                f"rollback {waiting.id} is {waiting.state}: cancel it, or wait until it ends"
            )
        return waiting, False
    if sync_state.lease_is_live(state, now) and state.lease_expires_at is not None:
        raise errors.MutexHeld(max(1, math.ceil((state.lease_expires_at - now).total_seconds())))
    rollback = PriceRollback(
        seller_id=caller.seller_id,
        scope=scope,
        cards=cards,
        requested_at=now,
        expires_at=now + lasts,
        **({} if cards else {"state": "applied", "finished_at": now}),
    )
    session.add(rollback)
    await session.flush()
    await session.refresh(rollback)
    if cards:
        # Until the rollback is ready, no price file has the prices that it reverts.
        state.rollback_preparing_until = rollback.expires_at
    note(
        session,
        caller,
        "pricing.rollback_requested",
        f"rollback {rollback.id} of {scope_words(scope)}: {cards} cards",
        now,
    )
    return rollback, bool(cards)


async def _waiting(
    session: AsyncSession,
    state: SyncState,
    now: datetime,
) -> PriceRollback | None:
    """Return the open rollback. If its time has passed, end it and return None."""
    waiting = await open_one(session, state.seller_id)
    if waiting is None or waiting.expires_at > now:
        return waiting
    await end(session, state, waiting, "expired", now)
    return None


def scope_words(scope: Mapping[str, object]) -> str:
    [(name, value)] = scope.items()
    return f"everything since {value}" if name == "since" else f"{name.removesuffix('_id')} {value}"


async def open_one(session: AsyncSession, seller_id: int) -> PriceRollback | None:
    statement = select(PriceRollback).where(
        PriceRollback.seller_id == seller_id, PriceRollback.state.in_(OPEN)
    )
    return (
        await session.scalars(statement.execution_options(populate_existing=True))
    ).one_or_none()


async def rollback_of(session: AsyncSession, seller_id: int, rollback_id: int) -> PriceRollback:
    """Return the rollback with this id. Raise NotFound."""
    statement = select(PriceRollback).where(
        PriceRollback.seller_id == seller_id, PriceRollback.id == rollback_id
    )
    found = await session.scalar(statement.execution_options(populate_existing=True))
    if found is None:
        raise errors.NotFound(f"there is no rollback {rollback_id}")
    return found


async def read(session: AsyncSession, caller: Caller, rollback_id: int) -> PriceRollback:
    """Return the rollback with this id for an owner. Raise NotFound."""
    caller.must_be_owner()
    return await rollback_of(session, caller.seller_id, rollback_id)


async def newest(source: Source, caller: Caller) -> list[PriceRollback]:
    caller.must_be_owner()
    tail = "ORDER BY id DESC LIMIT :most"
    return await rows_as(source, PriceRollback, caller.seller_id, tail, most=ROLLBACKS_SHOWN)


def state_at(rollback: PriceRollback, now: datetime) -> str:
    """Return the rollback's state. A rollback past its time is expired, even before its row is
    updated. Pure.
    """
    return "expired" if rollback.state in OPEN and rollback.expires_at <= now else rollback.state


async def diff_shown(session: AsyncSession, rollback: PriceRollback) -> Diff:
    """Return the stored diff. Before the rollback is prepared, compute the diff from the present
    prices.
    """
    if rollback.state == "requested":
        return (await diff_of(session, rollback.seller_id, rollback.scope))[1]
    rows = await session.execute(
        text(_KEPT_DIFF),
        {"seller": rollback.seller_id, "id": rollback.id},
    )
    return [dict(row) for row in rows.mappings()]


async def cancel(
    session: AsyncSession,
    caller: Caller,
    rollback_id: int,
    now: datetime,
) -> PriceRollback:
    """Cancel a rollback before it is served. Canceling it again changes nothing. Raises NotFound,
    NotCancellable.
    """
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    rollback = await rollback_of(session, caller.seller_id, rollback_id)
    shown_state = state_at(rollback, now)
    if shown_state == "cancelled":
        return rollback
    if shown_state not in ("requested", "ready"):
        raise NotCancellable(f"rollback {rollback_id} is {shown_state}")
    await end(session, state, rollback, "cancelled", now)
    note(session, caller, "pricing.rollback_cancelled", f"rollback {rollback_id} canceled", now)
    return rollback


async def end(
    session: AsyncSession,
    state: SyncState,
    rollback: PriceRollback,
    ending: Ending,
    now: datetime,
    error: JsonObject | None = None,
) -> None:
    """End the rollback and the agent's task. `state` is the seller's locked row. No price changes.
    A rollback that was not applied can be requested again.
    """
    if rollback.state in OPEN:
        state.rollback_until = state.rollback_preparing_until = None
    rollback.state = ending
    rollback.finished_at = now
    rollback.error = error
    await session.flush()
    status = {"applied": "completed", "failed": "failed"}.get(ending, "cancelled")
    await end_tasks(
        session,
        rollback.seller_id,
        "apply_rollback",
        status,
        now,
        rollback_id=rollback.id,
        error=error,
    )
    # A task that an agent has claimed is checked again when the claim has expired.
    await mark_due_by(session, rollback.seller_id, STREAM, now)
