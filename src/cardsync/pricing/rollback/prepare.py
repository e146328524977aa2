"""Preparing a rollback: one that was requested in, its cards with the prices that they go back to
out, in slabs under the seller's lease.

A worker that is killed leaves slabs behind which the next one goes on from; a rollback that
nobody applies ends here as expired.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta

import procrastinate
import psycopg
import structlog
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.access.activity import Activity
from cardsync.access.caller import Caller
from cardsync.agentwork.tasks import end_unclaimed_rollbacks, enqueue_task
from cardsync.database.session import run
from cardsync.pricing.models import PriceRollback
from cardsync.pricing.rollback.rollbacks import STREAM, ask, end, open_one, told_of
from cardsync.pricing.rollback.scope import KEEP, Scope, is_lost, statement, values_of
from cardsync.seller_state import state as sync_state
from cardsync.seller_state.state import (
    CancelRequested,
    Lease,
    LeaseLost,
    hold_lease,
    locked,
    own_state,
    release_lease,
)
from cardsync.work.jobs import Work, enqueue, jobs, mark_due, mark_due_by, work_of
from cardsync.work.setbacks import PutBack
from cardsync.work.streams import Due, due_of, forget, rest, setback

log = structlog.get_logger(__name__)

HOLDER = "rollback"
_NEXT = """
    SELECT max(id) FROM (SELECT id FROM card WHERE seller_id = :seller AND id > :after ORDER BY id LIMIT :slab) slab
"""


@jobs.task(name="pricing.rollback", queue="imports", pass_context=True)
async def prepare_rollback(context: procrastinate.JobContext, seller_id: int) -> None:
    await work_off(work_of(context), seller_id)


async def request(
    session: AsyncSession, caller: Caller, scope: Scope, cards: int, now: datetime, lasts: timedelta
) -> tuple[PriceRollback, bool]:
    """The rollback, and whether it is new: then its job comes with it.

    Raises MutexHeld, RollbackOpen.
    """
    rollback, is_new = await ask(session, caller, scope, cards, now, lasts)
    if is_new:
        await mark_due(session, caller.seller_id, STREAM)
        await enqueue(session, prepare_rollback, seller_id=caller.seller_id)
    return rollback, is_new


async def work_off(work: Work, seller_id: int) -> None:
    """Prepare what was requested, end what ran out.

    What somebody else is at, the sweep comes back to.
    """
    async with work.database.tenant(seller_id) as session:
        due = await due_of(session, seller_id, STREAM)
        now = clock.now()
        state = await locked(session, seller_id)
        rollback = await open_one(session, seller_id)
        if rollback is not None and rollback.expires_at <= now:
            await end(session, state, rollback, "expired", now)
            rollback = None
        if rollback is None or rollback.state != "requested":
            await forget(session, seller_id, STREAM, due)
            claimed_until = await end_unclaimed_rollbacks(session, seller_id, now)
            for again_at in (rollback.expires_at if rollback is not None else None, claimed_until):
                if again_at is not None:
                    await mark_due_by(session, seller_id, STREAM, again_at)
            return
        if due is not None and due.rests(rollback.id, now):
            return
        lease = await sync_state.take_lease(
            session, seller_id, HOLDER, now, work.settings.lease_seconds
        )
    if lease is not None:
        await _prepare(work, lease, rollback, due)


async def _prepare(work: Work, lease: Lease, rollback: PriceRollback, due: Due | None) -> None:
    bound = log.bind(seller_id=lease.seller_id, rollback_id=rollback.id)
    try:
        while await _slab(work, lease, rollback.id):
            pass
    except LeaseLost:
        bound.warning("lease_lost")
    except CancelRequested:
        bound.info("rollback_waits", kind="cancel")
    except Exception as e:
        match setback(e, lease.seller_id, STREAM, rollback.id, due, most=1):
            case PutBack() as back:
                await _put_back(work, lease, rollback, back)
            case _:
                with contextlib.suppress(LeaseLost):
                    await _fail(work, lease)


async def _put_back(work: Work, lease: Lease, rollback: PriceRollback, back: PutBack) -> None:
    """Leave the rollback open for another try; if even that can't be written, the lease runs out
    by itself.
    """
    with contextlib.suppress(SQLAlchemyError, psycopg.Error, OSError):
        async with work.database.tenant(lease.seller_id) as session:
            await sync_state.release_lease(session, lease)
            await rest(session, lease.seller_id, STREAM, rollback.id, back)


async def _slab(work: Work, lease: Lease, rollback_id: int) -> bool:
    """One transaction, which ends the rollback's preparation with the last card. True if there is
    more to do.

    It begins with the seller's row, as cancelling does.
    """
    now = clock.now()
    async with work.database.tenant(lease.seller_id) as session:
        await hold_lease(session, lease, now)
        rollback = await open_one(session, lease.seller_id)
        if rollback is None or rollback.id != rollback_id or rollback.state != "requested":
            await release_lease(session, lease)
            return False
        reach = {
            "seller": lease.seller_id,
            "after": rollback.prepared_to,
            "slab": work.settings.slab_rows,
        }
        last = await session.scalar(text(_NEXT), reach)
        if last is None:
            await _ready(session, work, lease, rollback)
            return False
        values = await values_of(
            session, lease.seller_id, rollback.scope, rollback.prepared_to, last
        )
        await run(session, statement(KEEP, rollback.scope), values | {"rollback": rollback.id})
        rollback.prepared_to = last
        return True


async def _ready(session: AsyncSession, work: Work, lease: Lease, rollback: PriceRollback) -> None:
    now = clock.now()
    state = await own_state(session, lease)
    rollback.cards = (
        await session.scalar(
            text(
                "SELECT count(*) FROM price_rollback_card WHERE seller_id = :seller AND rollback_id = :id"
            ),
            {"seller": lease.seller_id, "id": rollback.id},
        )
        or 0
    )
    if await is_lost(session, lease.seller_id, rollback.scope):
        error = {
            "code": "not_found",
            "message": "the list was deleted before the rollback was prepared",
        }
        await end(session, state, rollback, "failed", now, error)
    elif rollback.cards:
        rollback.state, rollback.ready_at = "ready", now
        rollback.expires_at = state.rollback_until = now + timedelta(
            seconds=work.settings.rollback_seconds
        )
        state.rollback_preparing_until = None
        await session.flush()
        await enqueue_task(
            session, lease.seller_id, "apply_rollback", {"rollback_id": rollback.id}, now
        )
    else:
        # What it would have brought back was sold, or went back by itself.
        await end(session, state, rollback, "applied", now)
    told = f"rollback {rollback.id} of {told_of(rollback.scope)} {rollback.state}: {rollback.cards} cards"
    session.add(
        Activity(
            seller_id=lease.seller_id,
            actor="pricing",
            action="pricing.rollback",
            summary=told,
            created_at=now,
        )
    )
    await session.flush()
    await release_lease(session, lease)


async def _fail(work: Work, lease: Lease) -> None:
    async with work.database.tenant(lease.seller_id) as session:
        state = await own_state(session, lease)
        rollback = await open_one(session, lease.seller_id)
        if rollback is not None:
            error = {"code": "internal_error", "message": "the rollback could not be prepared"}
            await end(session, state, rollback, "failed", clock.now(), error)
        await release_lease(session, lease)
