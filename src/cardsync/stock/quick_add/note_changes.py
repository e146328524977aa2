"""Records changes of quick-add entries. Sets `quick_add_waits` on the seller's state row, which the
export reads; keeps one task for the agent while an entry is published; and deletes files that an
answer has settled.

Every change locks the state row first (`locked`), so publishing, serving, and answers of the agent
and the seller run one after the other.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.agentwork.tasks import LISTINGS, enqueue_task, note_due
from cardsync.platform import limits

KIND = LISTINGS
# An agent may import a served file within this time. Afterwards the seller may settle the file's
# entries as not listed.
IN_HAND = timedelta(minutes=30)

_PUBLISHED = """
    SELECT id FROM quick_add WHERE seller_id = :seller AND status = 'published'
     ORDER BY id LIMIT :most
"""
_WAITS = """
    UPDATE sync_state SET quick_add_waits = EXISTS (
        SELECT FROM quick_add
         WHERE seller_id = :seller AND status IN ('published', 'pending'))
     WHERE seller_id = :seller
"""
# An answer for one entry proves that the agent received the file.
_ANSWERED = """
    DELETE FROM quick_add_file f
     WHERE f.seller_id = :seller AND EXISTS (
        SELECT FROM quick_add q
         WHERE q.seller_id = :seller AND q.id = ANY (f.entry_ids) AND q.status <> 'pending')
"""
_TASK = """
    SELECT id FROM agent_task
     WHERE seller_id = :seller AND kind = :kind
       AND (status = 'pending' OR (status = 'claimed' AND claim_expires_at <= :now))
     ORDER BY id LIMIT 1
"""
_PAYLOAD = """
    UPDATE agent_task
       SET payload = jsonb_set(payload, '{quick_add_ids}',
                               (SELECT to_jsonb(CAST(:ids AS bigint[])))),
           created_at = CASE WHEN :at_once THEN least(created_at, CAST(:now AS timestamptz))
                             ELSE created_at END
     WHERE seller_id = :seller AND id = :task
"""


async def note_waiting(
    session: AsyncSession,
    seller_id: int,
    now: datetime,
    *,
    at_once: bool = False,
) -> int | None:
    """Set or clear the mark `quick_add_waits`. If an entry is published, make sure that the agent
    has a task, and return the task's id. The caller holds the lock of the state row.

    With `at_once`, a task that pauses after a failure becomes due now, because a person caused the
    change.
    """
    await session.flush()
    await session.execute(text(_WAITS), {"seller": seller_id})
    await session.execute(text(_ANSWERED), {"seller": seller_id})
    values: dict[str, object] = {"seller": seller_id, "most": limits.QUICK_ADD_ROWS}
    ids = list(await session.scalars(text(_PUBLISHED), values))
    if not ids:
        return None
    task: int | None = await session.scalar(
        text(_TASK),
        {"seller": seller_id, "kind": KIND, "now": now},
    )
    if task is None:
        return await enqueue_task(session, seller_id, KIND, {"quick_add_ids": ids}, now)
    named = {"seller": seller_id, "task": task, "ids": ids, "at_once": at_once, "now": now}
    await session.execute(text(_PAYLOAD), named)
    if at_once:
        await note_due(session, seller_id)
    return task
