"""Lists a seller's tasks for pages and support, newest first.

An expired claim shows as its outcome, even before a request takes it back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.agentwork.models import AgentTask, Status
from cardsync.agents.agentwork.schemas import Tasks, task_body
from cardsync.agents.agentwork.task_kinds import ATTEMPTS, Kind
from cardsync.agents.limits import TASKS_PER_PAGE_MOST
from cardsync.platform import limits


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
    page: int,
    per_page: int,
    now: datetime,
) -> Tasks:
    """`page` and `per_page` are clamped to what there can be. Raises OwnerRequired."""
    caller.must_be_owner()
    page = min(max(page, 1), limits.PAGE_MOST)
    per_page = min(max(per_page, 1), TASKS_PER_PAGE_MOST)
    conditions: list[Any] = [AgentTask.seller_id == caller.seller_id]
    if status is not None:
        conditions.append(_status_at(now) == status)
    if kind is not None:
        conditions.append(AgentTask.kind == kind)
    total = await session.scalar(select(func.count()).select_from(AgentTask).where(*conditions))
    rows = select(AgentTask).where(*conditions).order_by(AgentTask.id.desc())
    found = await session.scalars(rows.limit(per_page).offset((page - 1) * per_page))
    shown = [task_body(task, now) for task in found]
    return Tasks(shown, total or 0, page, per_page, -(-(total or 0) // per_page))
