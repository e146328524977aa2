"""Work for the agent, asked for over HTTP."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import Response, Router, post
from litestar.openapi.datastructures import ResponseSpec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.admission import A_SESSION, A_TOKEN, BY_ANY
from cardsync.access.caller import Caller
from cardsync.agentwork import tasks
from cardsync.agentwork.shown import Task, task_body
from cardsync.web.request import FOR_EITHER, WITH_JSON_BODY, problems


class TaskRequest(msgspec.Struct):
    kind: Literal["refresh_orders", "refresh_account", "backfill_orders"]


@post(
    "/tasks",
    status_code=201,
    opt=BY_ANY,
    security=[A_SESSION, A_TOKEN],
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
    return Response(task_body(task), status_code=201 if made else 200)


router = Router(path="", route_handlers=[request_task], tags=["agent work"])
