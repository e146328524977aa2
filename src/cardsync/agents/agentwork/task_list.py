"""Lists a seller's tasks for pages and support, newest first.

A task whose claim expired is shown as pending or failed, even before a request takes it back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, case, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.agentwork.models import AgentTask, Status
from cardsync.agents.agentwork.schemas import Tasks, task_body
from cardsync.agents.agentwork.task_kinds import ATTEMPTS, Kind
from cardsync.platform.kit.row_pages import Paging, numbered


def _status_at(now: datetime) -> ColumnElement[str]:
    has_run_out = and_(AgentTask.status == "claimed", AgentTask.claim_expires_at <= now)
    return case(
        (and_(has_run_out, AgentTask.attempt + 1 >= ATTEMPTS), literal("failed")),
        (has_run_out, literal("pending")),
        else_=AgentTask.status,
    )


async def page_of_tasks(
    session: AsyncSession,
    caller: Caller,
    status: Status | None,
    kind: Kind | None,
    paging: Paging,
    now: datetime,
) -> Tasks:
    """Return a page of tasks. Raises OwnerRequired."""
    caller.must_be_owner()
    conditions: list[Any] = [AgentTask.seller_id == caller.seller_id]
    if status is not None:
        conditions.append(_status_at(now) == status)
    if kind is not None:
        conditions.append(AgentTask.kind == kind)
    newest = select(AgentTask).where(*conditions).order_by(AgentTask.id.desc())
    found = await numbered(session, newest, paging)
    return Tasks([task_body(task, now) for task in found.rows], *found.numbers)
