"""Prepares a requested rollback: it stores the cards with the prices to restore, in slabs (parts of
limited size) under the seller's lease. `platform/work/runner.py` runs this work.

If a worker is killed, the next worker continues after the stored cards. This module also ends the
rollbacks that no agent applied in time, as expired.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import procrastinate
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note_by
from cardsync.access.caller import Caller
from cardsync.agents.agentwork.models import AgentTask
from cardsync.agents.agentwork.tasks import end_unclaimed_rollbacks, enqueue_task
from cardsync.agents.seller_state.lease import UnderLease
from cardsync.agents.seller_state.state import Lease, hold_lease, locked, own_state, release_lease
from cardsync.platform import clock
from cardsync.platform.database.session import run
from cardsync.platform.value_types import JsonObject
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, enqueue, jobs, mark_due, mark_due_by
from cardsync.platform.work.streams import due_of, forget
from cardsync.prices.models import PriceRollback
from cardsync.prices.rollback.rollbacks import STREAM, ask, end, open_one, scope_words
from cardsync.prices.rollback.scope import KEEP, Scope, is_lost, statement, values_of

HOLDER = "rollback"
_NEXT = """
    SELECT max(id) FROM (SELECT id FROM card WHERE seller_id = :seller AND id > :after
        ORDER BY id LIMIT :slab) slab
"""


@jobs.task(name="pricing.rollback", queue="imports", pass_context=True)
async def prepare_rollback(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(ROLLBACKS, prepare_rollback, context, seller_id)


async def request(
    session: AsyncSession,
    caller: Caller,
    scope: Scope,
    cards: int,
    now: datetime,
    lasts: timedelta,
) -> tuple[PriceRollback, bool]:
    """Request a rollback. Return it and whether it is new. A new rollback gets its job in this
    transaction.

    Raises MutexHeld, RollbackOpen.
    """
    rollback, is_new = await ask(session, caller, scope, cards, now, lasts)
    if is_new:
        await mark_due(session, caller.seller_id, STREAM)
        await enqueue(session, prepare_rollback, seller_id=caller.seller_id)
    return rollback, is_new


async def _before(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """End a rollback that was not applied in time, or that no agent could apply."""
    state = await locked(session, seller_id)
    rollback = await open_one(session, seller_id)
    if rollback is not None and rollback.expires_at <= now:
        await end(session, state, rollback, "expired", now)
    elif rollback is not None and (error := await failure_of(session, rollback)) is not None:
        await end(session, state, rollback, "failed", now, error)


async def failure_of(session: AsyncSession, rollback: PriceRollback) -> JsonObject | None:
    """Return the error of the rollback's task if the task failed permanently, else None."""
    query = select(AgentTask.error).where(
        AgentTask.seller_id == rollback.seller_id,
        AgentTask.kind == "apply_rollback",
        AgentTask.status == "failed",
        AgentTask.payload["rollback_id"].as_integer() == rollback.id,
    )
    failed = (await session.execute(query.limit(1))).first()
    otherwise = {"code": "task_failed", "message": "the sync app could not import the file"}
    return None if failed is None else failed.error or otherwise


async def _requested(session: AsyncSession, seller_id: int) -> PriceRollback | None:
    rollback = await open_one(session, seller_id)
    return rollback if rollback is not None and rollback.state == "requested" else None


async def _nothing_left(work: Work, seller_id: int) -> bool:
    """Set the stream's due time to the time at which an open rollback, or an agent's claim of a
    rollback, expires.
    """
    async with work.database.tenant(seller_id) as session:
        await locked(session, seller_id)
        rollback = await open_one(session, seller_id)
        if rollback is not None and rollback.state == "requested":
            return False  # requested meanwhile, with a new due time
        due = await due_of(session, seller_id, STREAM)
        now = clock.now()
        await forget(session, seller_id, STREAM, due)
        claimed_until = await end_unclaimed_rollbacks(session, seller_id, now)
        for again_at in (rollback.expires_at if rollback is not None else None, claimed_until):
            if again_at is not None:
                await mark_due_by(session, seller_id, STREAM, again_at)
    return False


async def _prepare(work: Work, lease: Lease, rollback: PriceRollback) -> None:
    while await _slab(work, lease, rollback.id):
        pass


async def _slab(work: Work, lease: Lease, rollback_id: int) -> bool:
    """Prepare one slab in one transaction. After the last card, end the preparation. Return whether
    there is more to do.

    The transaction first locks the seller's row, as a cancellation does.
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
            session,
            lease.seller_id,
            rollback.scope,
            rollback.prepared_to,
            last,
        )
        await run(
            session,
            statement(KEEP, rollback.scope),
            values | {"rollback": rollback.id},
        )
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
        rollback.state = "ready"
        rollback.ready_at = now
        rollback.expires_at = state.rollback_until = now + timedelta(
            seconds=work.settings.rollback_seconds
        )
        state.rollback_preparing_until = None
        await session.flush()
        await enqueue_task(
            session,
            lease.seller_id,
            "apply_rollback",
            {"rollback_id": rollback.id},
            now,
        )
    else:
        # No card is left to restore: the cards were sold, or already have their earlier prices.
        await end(session, state, rollback, "applied", now)
    scope = scope_words(rollback.scope)
    summary = f"rollback {rollback.id} of {scope} {rollback.state}: {rollback.cards} cards"
    note_by(session, lease.seller_id, "pricing", "pricing.rollback", summary, now)
    await session.flush()
    await release_lease(session, lease)


async def _fail(
    work: Work,
    lease: Lease,
    rollback: PriceRollback,
    code: str | None,
    why: str,
) -> None:
    async with work.database.tenant(lease.seller_id) as session:
        state = await own_state(session, lease)
        own = await _requested(session, lease.seller_id)
        if own is not None and own.id == rollback.id:
            error = {
                "code": code or "internal_error",
                "message": why or "the rollback could not be prepared",
            }
            await end(session, state, own, "failed", clock.now(), error)
        await release_lease(session, lease)


ROLLBACKS = runner.Stream[PriceRollback, Lease](
    STREAM,
    UnderLease(HOLDER),
    oldest=_requested,
    work=_prepare,
    fail=_fail,
    before=_before,
    nothing_left=_nothing_left,
)
work_off_one = partial(runner.work_off_one, ROLLBACKS)
