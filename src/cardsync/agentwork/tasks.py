"""Work that waits for a seller's agent: what kinds there are, which the heartbeat tells of,
queueing and cancelling.

A task waits while it is pending, and again once its claim has run out. From when on some task
waits stands on the seller's state row, which every heartbeat reads anyway: whoever changes tasks
takes that row first and ends with `note_due`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import and_, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.entitlements import PriceTasks
from cardsync.access.models import Account
from cardsync.agentwork.models import AgentTask
from cardsync.seller_state.state import locked

# Pushing targets: what a pause holds back and a read-only account loses. Rollbacks and listings
# are the seller's own doing and stay.
PRICE_TASKS = ("apply_price_updates",)
KINDS = (
    "refresh_orders",
    "backfill_orders",
    "backfill_sales_report",
    "apply_price_updates",
    "apply_rollback",
    "quick_add_listing",
    "refresh_account",
)
# What writes prices to the marketplace, as the phases push_queued and pushing tell of it.
_PUSHES = ("apply_price_updates", "apply_rollback")
# Of the files and cycles of a task the newest so many are remembered.
_MOST_NAMED = 50


def advertised(
    tasks_due_at: datetime | None,
    price_tasks_due_at: datetime | None,
    price_tasks: PriceTasks,
    now: datetime,
) -> bool:
    """`has_pending_tasks`: does anything wait that this account's agent may have? Pure."""
    return _waits(tasks_due_at, now) or (
        price_tasks == "advertised" and _waits(price_tasks_due_at, now)
    )


def lost(price_tasks_due_at: datetime | None, price_tasks: PriceTasks, now: datetime) -> bool:
    """Do price tasks wait that this account may not keep? Pure."""
    return price_tasks == "cancelled" and _waits(price_tasks_due_at, now)


def _waits(due_at: datetime | None, now: datetime) -> bool:
    return due_at is not None and due_at <= now


async def enqueue_task(
    session: AsyncSession,
    seller_id: int,
    kind: str,
    payload: dict[str, Any],
    now: datetime,
) -> int:
    """In the transaction that makes the work; returns the task's id."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of agent task")
    await locked(session, seller_id)
    task = AgentTask(seller_id=seller_id, kind=kind, payload=payload, created_at=now)
    session.add(task)
    await session.flush()
    await note_due(session, seller_id)
    return task.id


async def request_task(
    session: AsyncSession, caller: Caller, kind: str, now: datetime
) -> tuple[AgentTask, bool]:
    """The task that the seller asked for, and whether it is new: one that waits is told again.

    Raises OwnerRequired.
    """
    caller.must_be_owner()
    await locked(session, caller.seller_id)
    query = select(AgentTask).where(AgentTask.seller_id == caller.seller_id, AgentTask.kind == kind)
    waits = or_(
        AgentTask.status == "pending",
        and_(AgentTask.status == "claimed", AgentTask.claim_expires_at <= now),
    )
    waiting = await session.scalar(query.where(waits).order_by(AgentTask.id).limit(1))
    if waiting is not None:
        return waiting, False
    task_id = await enqueue_task(session, caller.seller_id, kind, {}, now)
    note(session, caller, "task.requested", f"task {task_id}: {kind}", now)
    return (await session.scalars(query.where(AgentTask.id == task_id))).one(), True


async def end_tasks(
    session: AsyncSession,
    seller_id: int,
    kind: str,
    status: str,
    now: datetime,
    *,
    rollback_id: int | None = None,
    error: dict[str, Any] | None = None,
) -> int:
    """End what is open of a kind, of one rollback where that is named. Returns how many.

    What an agent has in hand is not cancelled: it may be done with it.
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


async def end_pushes(
    session: AsyncSession,
    seller_id: int,
    cycle: str | None,
    sha256: str | None,
    imported_at: datetime,
    now: datetime,
) -> None:
    """Complete the price pushes that an import of prices ends: those of its cycle or its file.

    An agent's clock may be wrong, so `imported_at` counts only where no push knows cycle or file,
    as when the seller saved the file anew: then what was queued before it is done.
    """
    await locked(session, seller_id)
    values = {
        "seller": seller_id, "kinds": list(PRICE_TASKS), "cycle": cycle, "file": sha256, "at": imported_at, "now": now,
    }  # fmt: skip
    await session.execute(
        text("""
            WITH named AS (
                SELECT id FROM agent_task
                 WHERE seller_id = :seller AND kind = ANY(:kinds)
                   AND (:cycle = ANY(cycles) OR :file = ANY(files))
            )
            UPDATE agent_task SET status = 'completed', finished_at = :now
             WHERE seller_id = :seller AND kind = ANY(:kinds) AND status IN ('pending', 'claimed')
               AND (id IN (SELECT id FROM named)
                    OR (created_at <= :at AND NOT EXISTS (SELECT FROM named)))
        """),
        values,
    )
    await note_due(session, seller_id)


async def note_push(
    session: AsyncSession,
    seller_id: int,
    what: Literal["files", "cycles"],
    name: str,
) -> None:
    """Remember with the open price pushes a file that was served for them, or a cycle of theirs."""
    await session.execute(
        text(f"""
            UPDATE agent_task
               SET {what} = (array_prepend(CAST(:name AS text), {what}))[1:{_MOST_NAMED}]
             WHERE seller_id = :seller AND kind = ANY(:kinds) AND status IN ('pending', 'claimed')
               AND NOT CAST(:name AS text) = ANY({what})
        """),
        {"seller": seller_id, "kinds": list(PRICE_TASKS), "name": name},
    )


async def end_unclaimed_rollbacks(
    session: AsyncSession, seller_id: int, now: datetime
) -> datetime | None:
    """Cancel the tasks of rollbacks that are over, which no agent has in hand; returns when the
    next claim on such a one runs out.
    """
    await locked(session, seller_id)
    over = """seller_id = :seller AND kind = 'apply_rollback' AND status IN ('pending', 'claimed') AND NOT EXISTS (
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
    """Write on the state row, which the caller has locked, from when on tasks wait: a pending one
    at once, a claimed one when that ends.
    """
    await session.execute(
        text("""
            UPDATE sync_state SET tasks_due_at = due.other, price_tasks_due_at = due.price
              FROM (SELECT min(at) FILTER (WHERE kind <> ALL (:price_tasks)) AS other,
                           min(at) FILTER (WHERE kind = ANY (:price_tasks)) AS price
                      FROM (SELECT kind, CASE status WHEN 'pending' THEN created_at ELSE claim_expires_at END AS at
                              FROM agent_task WHERE seller_id = :seller
                                  AND status IN ('pending', 'claimed')) AS open) AS due
             WHERE seller_id = :seller
        """),
        {"seller": seller_id, "price_tasks": list(PRICE_TASKS)},
    )


async def cancel_price_tasks(session: AsyncSession, seller_id: int, now: datetime) -> int:
    """Cancel what waits; a claim that has not run out survives. Returns how many."""
    await locked(session, seller_id)
    cancelled = await session.execute(
        text("""
            UPDATE agent_task SET status = 'cancelled', finished_at = :now
             WHERE seller_id = :seller AND kind = ANY(:price_tasks)
                 AND status IN ('pending', 'claimed')
               AND (status = 'pending' OR claim_expires_at <= :now)
            RETURNING id
        """),
        {"seller": seller_id, "price_tasks": list(PRICE_TASKS), "now": now},
    )
    await note_due(session, seller_id)
    return len(cancelled.all())


async def cancel_lost(session: AsyncSession, seller_id: int, now: datetime) -> int:
    """Cancel the waiting price tasks of an account that is held read-only, as it is once we have
    its rows.
    """
    await locked(session, seller_id)
    statement = select(Account).where(Account.seller_id == seller_id).with_for_update()
    account = (
        await session.execute(statement.execution_options(populate_existing=True))
    ).scalar_one()
    if account.entitlements(now).price_tasks != "cancelled":
        return 0
    return await cancel_price_tasks(session, seller_id, now)


async def push_of(session: AsyncSession, seller_id: int, now: datetime) -> str | None:
    """`pushing` while an agent has a price push in hand, `push_queued` while one waits, else
    None.
    """
    claimed = await session.scalar(
        text("""
            SELECT bool_or(status = 'claimed' AND claim_expires_at > :now) FROM agent_task
             WHERE seller_id = :seller AND kind = ANY(:pushes) AND status IN ('pending', 'claimed')
        """),
        {"seller": seller_id, "pushes": list(_PUSHES), "now": now},
    )
    return None if claimed is None else "pushing" if claimed else "push_queued"
