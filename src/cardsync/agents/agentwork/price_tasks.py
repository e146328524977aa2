"""Completes, cancels and looks up price tasks, which send prices to the marketplace."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.agents.agentwork.task_kinds import PRICE_TASKS, PUSHES
from cardsync.agents.agentwork.tasks import note_due
from cardsync.agents.seller_state.state import locked
from cardsync.platform.database.read_sources import Source, rows_of

# A task stores at most this many of its newest files and cycles.
_MOST_NAMED = 50
_PUSH = """
    SELECT bool_or(status = 'claimed' AND claim_expires_at > :now) FROM agent_task
     WHERE seller_id = :seller AND kind = ANY(:pushes) AND status IN ('pending', 'claimed')
"""


async def end_pushes(
    session: AsyncSession,
    seller_id: int,
    cycle: str | None,
    sha256: str | None,
    imported_at: datetime,
    now: datetime,
) -> datetime | None:
    """Complete the price pushes that have the cycle or file of an import of prices. Return when the
    newest of these pushes was queued.

    If no push has the cycle or file, for example because the seller saved the file again, complete
    every push that was queued until `imported_at`, a time of the agent's clock, which may be wrong.
    """
    await locked(session, seller_id)
    values = {
        "seller": seller_id,
        "kinds": list(PRICE_TASKS),
        "cycle": cycle,
        "file": sha256,
        "at": imported_at,
        "now": now,
    }
    found = await session.execute(
        text("""
            SELECT id, created_at FROM agent_task
             WHERE seller_id = :seller AND kind = ANY(:kinds)
               AND (:cycle = ANY(cycles) OR :file = ANY(files))
        """),
        values,
    )
    named = found.all()
    await session.execute(
        text("""
            UPDATE agent_task SET status = 'completed', finished_at = :now
             WHERE seller_id = :seller AND kind = ANY(:kinds) AND status IN ('pending', 'claimed')
               AND CASE WHEN cardinality(CAST(:named AS bigint[])) > 0
                        THEN id = ANY(CAST(:named AS bigint[])) ELSE created_at <= :at END
        """),
        values | {"named": [push.id for push in named]},
    )
    await note_due(session, seller_id)
    return max((push.created_at for push in named), default=None)


async def note_push(
    session: AsyncSession,
    seller_id: int,
    what: Literal["files", "cycles"],
    name: str,
) -> None:
    """Add a served file's SHA-256, or a cycle, to the seller's open price pushes."""
    # Citus 13.2.2: a slice without `coalesce` crashes the coordinator.
    await session.execute(
        text(f"""
            UPDATE agent_task
               SET {what} = coalesce((array_prepend(CAST(:name AS text), {what}))[1:{_MOST_NAMED}],
                   {what})
             WHERE seller_id = :seller AND kind = ANY(:kinds) AND status IN ('pending', 'claimed')
               AND NOT CAST(:name AS text) = ANY({what})
        """),
        {"seller": seller_id, "kinds": list(PRICE_TASKS), "name": name},
    )


async def cancel_price_tasks(session: AsyncSession, seller_id: int, now: datetime) -> int:
    """Cancel the pending price tasks and those whose claim expired; return their number."""
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
    """Cancel the waiting price tasks if the account, read under its lock, is read-only."""
    await locked(session, seller_id)
    statement = select(Account).where(Account.seller_id == seller_id).with_for_update()
    account = (
        await session.execute(statement.execution_options(populate_existing=True))
    ).scalar_one()
    if account.entitlements(now).price_tasks != "cancelled":
        return 0
    return await cancel_price_tasks(session, seller_id, now)


async def push_of(source: Source, seller_id: int, now: datetime) -> str | None:
    """Return `pushing` while an agent has claimed a price push, `push_queued` while a price push
    waits, else None.
    """
    values = {"seller": seller_id, "pushes": list(PUSHES), "now": now}
    [[claimed]] = await rows_of(source)(_PUSH, values)
    return None if claimed is None else "pushing" if claimed else "push_queued"
