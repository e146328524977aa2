"""Gives waiting tasks to an agent as claims, and ends the claims.

Each change of tasks first locks the seller's `sync_state` row, so two changes cannot deadlock.
The agent gets a token for each claim; only its hash is stored. Each claim request first takes back
the seller's expired claims (`_TAKE_BACK`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import REQUEST_ID
from cardsync.access.caller import Caller
from cardsync.access.tokens import token_hash
from cardsync.agents.agentwork import price_tasks, tasks
from cardsync.agents.agentwork.models import AgentTask
from cardsync.agents.agentwork.task_kinds import (
    ATTEMPTS,
    PRICE_TASKS,
    RETRY,
    ROUTINE,
    Kind,
    handed_out,
)
from cardsync.agents.agentwork.tasks import NOTE_DUE, NOTE_DUE_AND_KINDS, end_rollback
from cardsync.agents.errors import ClaimExpired
from cardsync.platform import errors
from cardsync.platform.clock import rfc3339
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database, in_one_message
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject

_LOCK = "SELECT seller_id FROM sync_state WHERE seller_id = :seller FOR UPDATE"
# An expired claim counts as an attempt. After the last attempt the task fails; `finished_at` is the
# time when the claim expired, because the task list shows the task as failed since then.
_TAKE_BACK = f"""
    UPDATE agent_task
       SET status = CASE WHEN attempt + 1 >= {ATTEMPTS} THEN 'failed' ELSE 'pending' END,
           error = CASE WHEN attempt + 1 >= {ATTEMPTS} THEN CAST(:expired AS jsonb) ELSE error END,
           finished_at = CASE WHEN attempt + 1 >= {ATTEMPTS} THEN claim_expires_at END,
           attempt = attempt + 1, token_hash = NULL, claimed_at = NULL, claim_expires_at = NULL
     WHERE seller_id = :seller AND status = 'claimed' AND claim_expires_at <= :now
    RETURNING kind, status
"""
# Cancel a pending routine task with earlier attempts if a newer routine task of its kind is
# pending: the newer task does the work of both.
_GIVE_UP_DOUBLES = f"""
    UPDATE agent_task AS t SET status = 'cancelled', finished_at = :now
     WHERE seller_id = :seller AND status = 'pending' AND priority = {ROUTINE} AND attempt > 0
       AND EXISTS (SELECT FROM agent_task n WHERE n.seller_id = :seller AND n.kind = t.kind
         AND n.id > t.id
                      AND n.status = 'pending' AND n.priority = {ROUTINE})
"""
# A task with earlier attempts ranks as a retry, whatever its priority. If the agent reports no
# capabilities, the statement reads the stored `agent_kinds`: after the lock, because another claim
# may have changed them.
_CLAIM = queries_of(__package__)["claim"].format(retry=RETRY)
_END = queries_of(__package__)["end"].format(attempts=ATTEMPTS)
# This statement runs before `_END`, because it selects the task while it is still claimed.
_NOTE = """
    INSERT INTO activity (seller_id, actor, action, summary, request_id, created_at)
    SELECT :seller, CAST(:actor AS text), 'task.' || CAST(:ended_as AS text),
           'task ' || t.id || ': ' || t.kind || CAST(:become AS text), CAST(:request AS text),
             CAST(:now AS timestamptz)
      FROM (SELECT id, kind FROM agent_task
             WHERE seller_id = :seller AND id = :id AND status = 'claimed' AND token_hash = :hash
               AND claim_expires_at > :now) t
"""
_TASK = f"SELECT {', '.join(AgentTask.__table__.columns.keys())} FROM agent_task WHERE seller_id = :seller AND id = :id"
# Add the agent's reported outcome to a task that an import report ended during the agent's claim.
_ENDED_BEFORE = """
    UPDATE agent_task SET result = coalesce(result, CAST(:result AS jsonb)),
      ended_hash = CAST(:hash AS bytea), ended_as = CAST(:ended_as AS text)
     WHERE seller_id = :seller AND id = :id
"""


Named = Annotated[str, msgspec.Meta(max_length=200)]


class ClaimedTask(msgspec.Struct):
    """`claim_token` is shown only here; with it the agent ends the claim before `claim_expires_at`."""

    id: int
    kind: Kind
    """The work that the agent is to do"""
    payload: JsonObject
    attempt: int
    claimed_at: str
    claim_token: str
    claim_expires_at: str


class ClaimedTasks(msgspec.Struct):
    tasks: list[ClaimedTask]
    """The tasks that the agent now has"""


class TaskError(msgspec.Struct):
    code: Named
    message: Annotated[str, msgspec.Meta(max_length=10_000)]


class TaskOutcome(msgspec.Struct):
    """A failed task with `retryable` is offered again, up to five attempts in all."""

    status: Literal["completed", "failed"]
    """completed or failed"""
    claim_token: Named
    result: JsonObject | None = None
    error: TaskError | None = None
    retryable: bool = False


async def claim(
    database: Database,
    caller: Caller,
    kinds: Sequence[str] | None,
    can: Sequence[str] | None,
    most: int,
    now: datetime,
    settings: Settings,
) -> ClaimedTasks:
    """Claim at most `most` tasks, the highest priority first.

    `kinds` limits the claim; `can` contains the agent's capabilities. If only `kinds` is sent, it
    counts as the capabilities; if neither is sent, the stored capabilities count.
    """
    said = list(can) if can is not None else list(kinds) if kinds else None
    if not _may_wait(caller, said, now):
        return ClaimedTasks([])
    async with database.tenant(caller.seller_id) as session:
        allowed = caller.entitlements(now)
        if allowed.price_tasks == "cancelled":
            await price_tasks.cancel_lost(session, caller.seller_id, now)
        wanted = handed_out(
            kinds,
            said,
            prices_held=allowed.price_tasks != "advertised",
            rollback_waits=tasks.rollback_waits(caller.state.rollback_until, now),
            paid=allowed.paid,
        )
        return ClaimedTasks(
            await _hand_out(session, caller.seller_id, wanted, said, most, now, settings)
        )


def _may_wait(caller: Caller, said: list[str] | None, now: datetime) -> bool:
    """Return False if no task is due and the capabilities are unchanged: no statement is needed."""
    return (
        (said is not None and said != caller.state.agent_kinds)
        or tasks.waits(caller.state.tasks_due_at, now)
        or tasks.waits(caller.state.price_tasks_due_at, now)
    )


async def _hand_out(
    session: AsyncSession,
    seller_id: int,
    kinds: list[str],
    said: list[str] | None,
    most: int,
    now: datetime,
    settings: Settings,
) -> list[ClaimedTask]:
    ends = now + timedelta(seconds=settings.claim_ttl_seconds)
    tokens = [secrets.token_urlsafe(32) for _ in range(most)]
    # Write the agent's capabilities even if they equal `caller.state.agent_kinds`: another claim
    # may have stored different capabilities since that state was read.
    note_due = NOTE_DUE if said is None else NOTE_DUE_AND_KINDS
    statements = (_LOCK, _TAKE_BACK, _GIVE_UP_DOUBLES, _CLAIM, note_due)
    values = {
        "seller": seller_id,
        "said": said,
        "kinds_known": int(said is not None),
        "kinds": kinds,
        "most": most,
        "now": now,
        "ends": ends,
        "price_tasks": list(PRICE_TASKS),
        "hashes": [token_hash(token) for token in tokens],
        "expired": _json(EXPIRED),
    }
    _, back, _, rows, _ = await in_one_message(session, statements, values)
    over = {row.kind for row in back if row.status == "failed"}
    if "apply_rollback" in over:
        await end_rollback(session, seller_id, now)
    if tasks.LISTINGS in over:
        await tasks.offer_listings_again(session, seller_id, now)
    at, until = rfc3339(now), rfc3339(ends)
    return [
        ClaimedTask(row.id, row.kind, row.payload, row.attempt, at, tokens[row.place - 1], until)
        for row in sorted(rows, key=lambda row: int(row.place))
    ]


EXPIRED = {
    "code": "claim_expired",
    "message": "the sync app did not report the task's outcome in time",
}


async def end_claim(
    session: AsyncSession,
    caller: Caller,
    task_id: int,
    outcome: TaskOutcome,
    now: datetime,
) -> AgentTask:
    """End a claim and return the task as it is now. A repeated report of the same outcome changes
    nothing.

    Raises NotFound, ClaimExpired.
    """
    hashed = token_hash(outcome.claim_token)
    values = _values(caller.seller_id, task_id, outcome, hashed) | {
        "counts": 1 if outcome.status == "failed" and outcome.retryable else 0,
        "error": _json(outcome.error) if outcome.status == "failed" else None,
        "now": now,
        "price_tasks": list(PRICE_TASKS),
        "actor": caller.actor,
        "become": ", and may be offered again" if outcome.retryable else "",
        "request": REQUEST_ID.get(),
    }
    doubles = (_GIVE_UP_DOUBLES,) if outcome.retryable else ()
    statements = (_LOCK, _NOTE, _END, *doubles, NOTE_DUE, _TASK)
    _, _, ended, *_, found = await in_one_message(session, statements, values)
    if not found:
        raise errors.NotFound(f"there is no task {task_id}")
    task = AgentTask(**found[0]._asdict())
    if not ended:
        return await _ended_before(session, task, outcome, hashed, now)
    if task.kind == "apply_rollback" and task.status == "failed":
        await end_rollback(session, task.seller_id, now)
    if task.kind == tasks.LISTINGS and task.status == "failed":
        await tasks.offer_listings_again(session, task.seller_id, now)
    return task


async def _ended_before(
    session: AsyncSession,
    task: AgentTask,
    outcome: TaskOutcome,
    hashed: bytes,
    now: datetime,
) -> AgentTask:
    """Return the task of a claim that has already ended, by an earlier report of the same outcome
    or by the agent's report of an import.

    Raises ClaimExpired.
    """
    if task.ended_hash == hashed and task.ended_as == outcome.status:
        return task
    if task.status != outcome.status or task.token_hash != hashed:
        raise ClaimExpired(_why(task, hashed, now))
    report_values = _values(task.seller_id, task.id, outcome, hashed)
    _, found = await in_one_message(session, (_ENDED_BEFORE, _TASK), report_values)
    return AgentTask(**found[0]._asdict())


def _values(
    seller_id: int,
    task_id: int,
    outcome: TaskOutcome,
    hashed: bytes,
) -> dict[str, object]:
    return {
        "seller": seller_id,
        "id": task_id,
        "hash": hashed,
        "ended_as": outcome.status,
        "result": _json(outcome.result),
    }


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _why(task: AgentTask, hashed: bytes, now: datetime) -> str:
    if task.status == "claimed" and task.token_hash != hashed:
        return f"task {task.id} is claimed by another token"
    if tasks.has_run_out(task, now):
        return f"the claim on task {task.id} expired; claim it again"
    return f"task {task.id} is {task.status}, and this token does not hold it"
