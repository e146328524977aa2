"""Work for the agent, asked for over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from litestar import Response, Router, post
from litestar.openapi.datastructures import ResponseSpec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.admission import A_SESSION, BY_EITHER
from cardsync.access.caller import Caller
from cardsync.agentwork import tasks
from cardsync.agentwork.models import AgentTask
from cardsync.web.request import FOR_EITHER, WITH_JSON_BODY, problems


class TaskRequest(msgspec.Struct):
    kind: Literal["refresh_orders", "refresh_account", "backfill_orders"]


class Task(msgspec.Struct):
    """`status` is pending, claimed, completed, failed or cancelled.

    `attempt` counts the claims that came to nothing.
    """

    id: int
    kind: str
    payload: dict[str, Any]
    status: str
    attempt: int
    created_at: str
    claimed_at: str | None
    claim_expires_at: str | None
    finished_at: str | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None


def _told(task: AgentTask) -> Task:
    moments = ("created_at", "claimed_at", "claim_expires_at", "finished_at")
    fields: dict[str, Any] = {name: getattr(task, name) for name in Task.__struct_fields__}
    return Task(**fields | {name: _rfc3339(fields[name]) for name in moments})


def _rfc3339(moment: datetime | None) -> str | None:
    return clock.rfc3339(moment) if moment else None


@post(
    "/tasks",
    status_code=201,
    opt=BY_EITHER,
    security=[A_SESSION],
    responses={
        200: ResponseSpec(
            data_container=Task,
            description="One of that kind waits already",
            generate_examples=False,
        ),
        **problems(*FOR_EITHER, *WITH_JSON_BODY, errors.OwnerRequired),
    },
)
async def request_task(caller: Caller, session: AsyncSession, data: TaskRequest) -> Response[Task]:
    """Ask the agent to fetch orders or the account anew, or the orders of all years."""
    task, made = await tasks.request_task(session, caller, data.kind, clock.now())
    return Response(_told(task), status_code=201 if made else 200)


router = Router(path="", route_handlers=[request_task], tags=["agent work"])
