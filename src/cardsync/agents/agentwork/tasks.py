"""Queues and cancels work for a seller's agent, and decides whether the heartbeat announces it.

A task waits while it is pending, and again after its claim has expired. The `sync_state` row,
which every heartbeat reads anyway, stores when the earliest task is due: each change of tasks
first locks that row and finally calls `note_due`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.entitlements import PriceTasks
from cardsync.agents.agentwork.models import AgentTask
from cardsync.agents.agentwork.task_kinds import (
    ATTEMPTS,
    BEHIND_A_ROLLBACK,
    KINDS,
    PRICE_TASKS,
    REQUESTED,
    ROUTINE,
    handed_out,
    priority_of,
)
from cardsync.agents.seller_state.state import locked
from cardsync.platform import limits
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.work.jobs import mark_due_by

# The worker stream that prepares rollbacks and ends finished rollbacks.
ROLLBACKS = "rollback"
LISTINGS = "quick_add_listing"
# The next listings task is due this long after the previous listings task used up its attempts.
LISTINGS_REST = timedelta(minutes=30)

# A listings task is due when an open rollback ends. Price pushes also wait for the rollback, but
# it does not change their due time, because they may be cancelled earlier.
_DUE_AFTER_A_ROLLBACK = [kind for kind in BEHIND_A_ROLLBACK if kind not in PRICE_TASKS]
# Store when the earliest task that the agent can do is due: a pending task is due at its creation,
# a claimed task when its claim expires.
_NOTE_DUE = queries_of(__package__)["note_due"].format(
    after_a_rollback=", ".join(f"'{kind}'" for kind in _DUE_AFTER_A_ROLLBACK)
)
NOTE_DUE = _NOTE_DUE.format(kinds="s.agent_kinds", also="")
# This statement also stores the kinds that the agent reports now (`:said`).
NOTE_DUE_AND_KINDS = _NOTE_DUE.format(
    kinds="CAST(:said AS text[])", also=", agent_kinds = CAST(:said AS text[])"
)


def advertised(
    tasks_due_at: datetime | None,
    price_tasks_due_at: datetime | None,
    agent_kinds: Collection[str] | None,
    price_tasks: PriceTasks,
    rollback_until: datetime | None,
    now: datetime,
) -> bool:
    """Return `has_pending_tasks`: whether a task waits that the account allows and the agent can
    do. Pure.

    `tasks_due_at` already counts only kinds that the agent can do, and considers open rollbacks.
    """
    pushes = agent_kinds is None or not set(PRICE_TASKS).isdisjoint(agent_kinds)
    held = price_tasks != "advertised" or rollback_waits(rollback_until, now)
    return waits(tasks_due_at, now) or (pushes and not held and waits(price_tasks_due_at, now))


def rollback_waits(rollback_until: datetime | None, now: datetime) -> bool:
    """Return whether a rollback's file is served instead of other tasks' files. Pure."""
    return rollback_until is not None and rollback_until > now


def lost(price_tasks_due_at: datetime | None, price_tasks: PriceTasks, now: datetime) -> bool:
    """Return whether waiting price tasks must be cancelled for this account. Pure."""
    return price_tasks == "cancelled" and waits(price_tasks_due_at, now)


def waits(due_at: datetime | None, now: datetime) -> bool:
    return due_at is not None and due_at <= now


def has_run_out(task: AgentTask, now: datetime) -> bool:
    """Return whether the task's claim has expired, even if no request has taken it back yet. Pure."""
    return (
        task.status == "claimed"
        and task.claim_expires_at is not None
        and task.claim_expires_at <= now
    )


_FOR_THE_UNPAID = """
    SELECT EXISTS (
        SELECT FROM agent_task
         WHERE seller_id = :seller AND kind = ANY(CAST(:kinds AS text[]))
           AND ((status = 'pending' AND created_at <= :now)
                OR (status = 'claimed' AND claim_expires_at <= :now)))
"""


async def wait_for_the_unpaid(session: AsyncSession, caller: Caller, now: datetime) -> bool:
    """Return whether a task waits that an unpaid account may have. Listings wait until the account
    is paid, and `tasks_due_at` does not show the kinds of the waiting tasks.
    """
    state = caller.state
    kinds = handed_out(
        None,
        state.agent_kinds,
        prices_held=True,
        rollback_waits=rollback_waits(state.rollback_until, now),
        paid=False,
    )
    values = {"seller": caller.seller_id, "kinds": kinds, "now": now}
    return bool(await session.scalar(text(_FOR_THE_UNPAID), values))


async def enqueue_task(
    session: AsyncSession,
    seller_id: int,
    kind: str,
    payload: dict[str, object],
    now: datetime,
    *,
    priority: int | None = None,
) -> int:
    """Add a task in the transaction that creates its work; return the task's ID.

    The default of `priority` is the kind's priority.
    """
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of agent task")
    await locked(session, seller_id)
    task = AgentTask(
        seller_id=seller_id,
        kind=kind,
        payload=payload,
        created_at=now,
        priority=priority_of(kind) if priority is None else priority,
    )
    session.add(task)
    await session.flush()
    await note_due(session, seller_id)
    return task.id


_OLDEST_WAITING: Final = """
    AND kind = :kind AND (status = 'pending'
         OR status = 'claimed' AND claim_expires_at <= :now AND attempt + 1 < :attempts)
    ORDER BY id LIMIT 1
"""


async def waiting_task(
    source: Source,
    seller_id: int,
    kind: str,
    now: datetime,
) -> AgentTask | None:
    """Return the oldest waiting task of a kind. A task whose claim expired waits, too, if it has
    attempts left.
    """
    values = {"kind": kind, "now": now, "attempts": ATTEMPTS}
    rows = await rows_as(source, AgentTask, seller_id, _OLDEST_WAITING, **values)
    return next(iter(rows), None)


async def enqueue_routine(
    session: AsyncSession,
    seller_id: int,
    kind: str,
    payload: dict[str, object],
    now: datetime,
) -> int:
    """Return the ID of the waiting task of the kind, or of a new routine task."""
    await locked(session, seller_id)
    waiting = await waiting_task(session, seller_id, kind, now)
    if waiting is not None:
        return waiting.id
    return await enqueue_task(session, seller_id, kind, payload, now, priority=ROUTINE)


_LISTED = """
    SELECT id FROM quick_add
     WHERE seller_id = :seller AND status = 'published'
       AND NOT EXISTS (SELECT FROM agent_task
                        WHERE seller_id = :seller AND kind = :kind
                          AND status IN ('pending', 'claimed'))
     ORDER BY id LIMIT :most
"""


async def offer_listings_again(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Replace a listings task that used up its attempts: if published quick adds are not listed yet
    and no other listings task is open, add a listings task that is due after `LISTINGS_REST`. The
    caller has locked the state row.
    """
    values = {
        "seller": seller_id,
        "kind": LISTINGS,
        "most": limits.QUICK_ADD_ROWS,
    }
    ids = list(await session.scalars(text(_LISTED), values))
    if ids:
        await enqueue_task(
            session,
            seller_id,
            LISTINGS,
            {"quick_add_ids": ids},
            now + LISTINGS_REST,
        )


async def end_rollback(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Make the rollback stream due: it ends the rollback whose task used up its attempts."""
    await mark_due_by(session, seller_id, ROLLBACKS, now)


async def request_task(
    session: AsyncSession,
    caller: Caller,
    kind: str,
    now: datetime,
) -> tuple[AgentTask, bool]:
    """Return the task that the seller requested, and whether it is new; a waiting task of the kind
    is reused.

    Raises OwnerRequired.
    """
    caller.must_be_owner()
    await locked(session, caller.seller_id)
    waiting = await waiting_task(session, caller.seller_id, kind, now)
    if waiting is not None:
        # The waiting task may be routine work: a person's request raises its priority.
        waiting.priority = min(waiting.priority, REQUESTED)
        await session.flush()
        return waiting, False
    task_id = await enqueue_task(session, caller.seller_id, kind, {}, now, priority=REQUESTED)
    note(session, caller, "task.requested", f"task {task_id}: {kind}", now)
    query = select(AgentTask).where(
        AgentTask.seller_id == caller.seller_id, AgentTask.id == task_id
    )
    return (await session.scalars(query)).one(), True


async def remember_kinds(session: AsyncSession, caller: Caller, kinds: list[str] | None) -> None:
    """Store the agent's capabilities if they changed, and update the due times that depend on
    them.
    """
    if kinds is None or kinds == caller.state.agent_kinds:
        return
    state = await locked(session, caller.seller_id)
    state.agent_kinds = kinds
    await session.flush()
    await note_due(session, caller.seller_id)


async def end_tasks(
    session: AsyncSession,
    seller_id: int,
    kind: str,
    status: str,
    now: datetime,
    *,
    rollback_id: int | None = None,
    error: dict[str, object] | None = None,
) -> int:
    """End the open tasks of a kind, or only those of the given rollback. Return how many.

    A task that an agent has claimed is not cancelled: the agent may have finished it.
    """
    await locked(session, seller_id)
    ended = await session.execute(
        update(AgentTask)
        .where(
            AgentTask.seller_id == seller_id,
            AgentTask.kind == kind,
            AgentTask.status.in_(("pending", "claimed")),
            *(
                [AgentTask.payload["rollback_id"].as_integer() == rollback_id]
                if rollback_id is not None
                else []
            ),
            *(
                [or_(AgentTask.status == "pending", AgentTask.claim_expires_at <= now)]
                if status == "cancelled"
                else []
            ),
        )
        .values(
            status=status,
            finished_at=now,
            **({} if error is None else {"error": error}),
        )
        .returning(AgentTask.id)
    )
    await note_due(session, seller_id)
    return len(ended.all())


async def complete_waiting(session: AsyncSession, seller_id: int, kind: str, now: datetime) -> None:
    """Complete the waiting tasks of a kind, because their work was done in another way. A claimed
    task is kept for its agent. The caller has locked the state row.
    """
    await session.execute(
        text("""
            UPDATE agent_task SET status = 'completed', finished_at = :now
             WHERE seller_id = :seller AND kind = :kind AND status IN ('pending', 'claimed')
               AND (status = 'pending' OR claim_expires_at <= :now)
        """),
        {"seller": seller_id, "kind": kind, "now": now},
    )
    await note_due(session, seller_id)


async def end_unclaimed_rollbacks(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
) -> datetime | None:
    """Cancel the unclaimed tasks of rollbacks that are over; return when the next claim on such a
    task expires.
    """
    await locked(session, seller_id)
    over = """seller_id = :seller AND kind = 'apply_rollback' AND status IN ('pending', 'claimed')
          AND NOT EXISTS (
        SELECT FROM price_rollback r WHERE r.seller_id = :seller
            AND r.id = (t.payload ->> 'rollback_id')::bigint
           AND r.state IN ('requested', 'ready', 'served'))"""
    await session.execute(
        text(f"""
            UPDATE agent_task t SET status = 'cancelled', finished_at = :now
             WHERE {over} AND (status = 'pending' OR claim_expires_at <= :now)
        """),
        {"seller": seller_id, "now": now},
    )
    await note_due(session, seller_id)
    ends: datetime | None = await session.scalar(
        text(f"SELECT min(claim_expires_at) FROM agent_task t WHERE {over}"), {"seller": seller_id}
    )
    return ends


async def note_due(session: AsyncSession, seller_id: int) -> None:
    """Update the due times on the state row, which the caller has locked."""
    await session.execute(text(NOTE_DUE), {"seller": seller_id, "price_tasks": list(PRICE_TASKS)})
