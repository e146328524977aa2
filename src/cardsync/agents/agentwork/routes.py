"""HTTP routes of work for the agent: request it, list it, claim it and end it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Response, Router, get, patch, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import BY_ANYBODY
from cardsync.access.caller import Caller
from cardsync.agents.agentwork import claims, tasks
from cardsync.agents.agentwork.claims import ClaimedTasks, Named, TaskOutcome
from cardsync.agents.agentwork.models import Status
from cardsync.agents.agentwork.schemas import Task, Tasks, task_body
from cardsync.agents.agentwork.task_kinds import KINDS, Kind, named_kinds
from cardsync.agents.agentwork.task_list import page_of_tasks
from cardsync.agents.errors import ClaimExpired
from cardsync.agents.limits import (
    TASK_RESULT_BYTES,
    TASKS_CLAIMED,
    TASKS_PER_PAGE,
    TASKS_PER_PAGE_MOST,
)
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import read_paging
from cardsync.platform.settings import Settings
from cardsync.stock.quick_add.settle import settle_result
from cardsync.web.request import (
    FOR_AGENTS,
    FOR_EITHER,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    problems,
)

Limit = Annotated[int, msgspec.Meta(ge=1, le=TASKS_CLAIMED)]


class TaskRequest(msgspec.Struct):
    kind: Literal["refresh_orders", "refresh_account", "backfill_orders"]
    """The work that the agent is to do"""


class ClaimRequest(msgspec.Struct):
    """`kinds` limits the claim to these kinds of tasks. `capabilities` are the agent's
    capabilities, as in GET /sync/pending.
    """

    kinds: Annotated[list[Named], msgspec.Meta(max_length=100)] | None = None
    """Only tasks of these kinds"""
    limit: Limit = 1
    """At most so many tasks, from 1 to 10"""
    capabilities: list[Named] | str | None = None


@post(
    "/tasks",
    status_code=201,
    **BY_ANYBODY,
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
    """Ask the agent to fetch orders or the account again, or the orders of all years."""
    now = clock.now()
    task, made = await tasks.request_task(session, caller, data.kind, now)
    return Response(task_body(task, now), status_code=201 if made else 200)


@get(
    "/tasks",
    **BY_ANYBODY,
    responses=problems(*READ_BY_OWNERS, errors.InvalidPayload),
)
async def list_tasks(
    caller: Caller,
    session: AsyncSession,
    status: Status | None = None,
    kind: Kind | None = None,
    page: Annotated[str, Parameter(required=False)] = "1",
    per_page: Annotated[str, Parameter(required=False)] = "",
) -> Tasks:
    """The tasks of the agent, newest first, of any status or kind."""
    return await page_of_tasks(
        session,
        caller,
        status,
        kind,
        read_paging(page, per_page, TASKS_PER_PAGE, TASKS_PER_PAGE_MOST),
        clock.now(),
    )


@post("/tasks/claim", status_code=200, responses=problems(*FOR_AGENTS, *WITH_JSON_BODY))
async def claim_tasks(
    caller: Caller,
    database: Database,
    settings: Settings,
    data: ClaimRequest | None = None,
) -> ClaimedTasks:
    """Claim tasks: new stock first, then a person's requests, retries and routine work.

    A task whose claim expires is offered again.
    """
    asked = data or ClaimRequest()
    kinds = [kind for kind in KINDS if kind in asked.kinds] if asked.kinds else None
    said = asked.capabilities
    can = named_kinds([said] if isinstance(said, str) else said)
    now = clock.now()
    return await claims.claim(database, caller, kinds, can, asked.limit, now, settings)


@patch(
    "/tasks/{task_id:int}",
    responses=problems(*FOR_AGENTS, *WITH_JSON_BODY, errors.NotFound, ClaimExpired),
)
async def end_task(
    caller: Caller,
    session: AsyncSession,
    task_id: int,
    data: TaskOutcome,
) -> Task:
    """Report the outcome of a claimed task; a repeated report gets the same answer."""
    now = clock.now()
    if data.result is not None and len(msgspec.json.encode(data.result)) > TASK_RESULT_BYTES:
        raise errors.InvalidPayload(f"result: is longer than {TASK_RESULT_BYTES:,} bytes")
    task = await claims.end_claim(session, caller, task_id, data, now)
    if task.kind == "quick_add_listing":
        await settle_result(session, caller, data.result, now)
    return task_body(task, now)


router = Router(
    path="",
    route_handlers=[request_task, list_tasks, claim_tasks, end_task],
    tags=["agent work"],
)
