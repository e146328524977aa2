"""HTTP routes of plans: assistants propose and read them, members confirm or decline them, and
owners set what assistants may do.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, Router, get, patch, post
from litestar.di import Provide
from litestar.openapi.datastructures import ResponseSpec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_SESSION, A_TOKEN, BY_ANY, BY_ANYBODY
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.platform.described import Like
from cardsync.platform.kit.row_pages import read_paging
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject
from cardsync.prices.errors import (
    OverlappingRuleTransitions,
    PlanNotWaiting,
    TransitionMatrixTooLarge,
)
from cardsync.prices.limits import PLAN_BYTES, PLANS_PER_PAGE, PLANS_PER_PAGE_MOST
from cardsync.prices.plans import decide_plan, new_plans, permissions, reads
from cardsync.prices.plans.schemas import (
    PlanPermissions,
    Plans,
    PlanShown,
    http_status,
    listed_body,
    plan_body,
)
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_MEMBERS,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    AnyRequest,
    problems,
    provide_bounded_session,
)

Body = JsonObject


class PlanClick(msgspec.Struct):
    """`revision` is the plan's revision that the member saw; by default the newest."""

    revision: int | None = None


OF_OPERATIONS = (
    errors.NotFound,
    errors.InvalidRule,
    errors.InvalidQuery,
    errors.InvalidName,
    errors.NameTaken,
    errors.ListLimitReached,
    errors.ListFull,
    errors.StockPromotedReload,
    errors.RuleTestsFailed,
)


@post(
    "/agent/plans",
    status_code=201,
    opt=BY_ANY | WRITES,
    security=[A_SESSION, A_TOKEN],
    responses={
        200: ResponseSpec(
            data_container=PlanShown,
            description="The plan is refused; `limit` and `error` say why and what to do",
            generate_examples=False,
        ),
        **problems(
            *FOR_OWNERS,
            *WITH_JSON_BODY,
            errors.ConfirmationNeeded,
            TransitionMatrixTooLarge,
            OverlappingRuleTransitions,
            *OF_OPERATIONS,
        ),
    },
)
async def propose_plan(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: Annotated[Body, Like(new_plans.PlanFields)],
) -> Response[PlanShown]:
    """Propose a plan `{plan_key?, dry_run?, actions: [{type, …}]}`, of which either all actions are
    carried out or none. A plan that is too large for the credential's permission mode waits for a
    member at `confirm_url`. A repeated `plan_key` creates no second plan.
    """
    now = clock.now()
    plan = await new_plans.propose(session, caller, settings, data, now)
    body = plan_body(plan, settings.origin, now)
    return Response(body, status_code=http_status(plan, now))


@get(
    "/agent/plans",
    **BY_ANYBODY,
    responses=problems(*READ_BY_OWNERS, errors.InvalidPayload),
)
async def list_plans(
    request: AnyRequest, caller: Caller, session: AsyncSession, settings: Settings,
    status: str | None = None,
) -> Plans:  # fmt: skip
    """List the plans, newest first; `status` selects the plans with one outcome."""
    now = clock.now()
    given = request.query_params
    paging = read_paging(
        given.get("page"), given.get("per_page"), PLANS_PER_PAGE, PLANS_PER_PAGE_MOST
    )
    found = await reads.page_of(session, caller, status, paging, now)
    shown = [listed_body(plan, settings.origin, now) for plan in found.rows]
    return Plans(shown, *found.numbers)


@get(
    "/agent/plans/{plan_id:int}",
    **BY_ANYBODY,
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
)
async def read_plan(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    plan_id: int,
) -> PlanShown:
    """Return one plan with its outcome."""
    plan = await reads.read(session, caller, plan_id)
    return await reads.shown(session, plan, settings.origin, clock.now())


DECIDING = problems(
    *FOR_MEMBERS,
    errors.OwnerRequired,
    *WITH_JSON_BODY,
    errors.NotFound,
    PlanNotWaiting,
)


@post(
    "/agent/plans/{plan_id:int}/confirm",
    status_code=200,
    opt=WRITES,
    responses=DECIDING,
)
async def confirm_plan(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    plan_id: int,
    data: PlanClick | None = None,
) -> PlanShown:
    """Confirm a plan by a member's click. The plan is applied if nothing has changed since it was
    shown; otherwise it is `drifted` and needs a new click.
    """
    now, revision = clock.now(), data.revision if data else None
    plan = await decide_plan.confirm(session, caller, settings, plan_id, revision, now)
    return plan_body(plan, settings.origin, now)


@post(
    "/agent/plans/{plan_id:int}/decline",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_MEMBERS, errors.OwnerRequired, errors.NotFound, PlanNotWaiting),
)
async def decline_plan(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    plan_id: int,
) -> PlanShown:
    """Decline a plan: none of its actions is carried out."""
    now = clock.now()
    plan = await decide_plan.decline(session, caller, plan_id, now)
    return plan_body(plan, settings.origin, now)


@get(
    "/agent/plans/permissions",
    responses=problems(*BEHIND_A_KEY, errors.SessionRequired, errors.OwnerRequired),
)
async def read_permissions(caller: Caller, session: AsyncSession) -> PlanPermissions:
    """Return the permission mode of each credential and kind of action."""
    return msgspec.convert(await permissions.read(session, caller), PlanPermissions)


@patch(
    "/agent/plans/permissions",
    opt=WRITES,
    responses=problems(*FOR_MEMBERS, errors.OwnerRequired, *WITH_JSON_BODY),
)
async def change_permissions(
    caller: Caller, session: AsyncSession, data: Annotated[Body, Like(permissions.Permissions)]
) -> PlanPermissions:
    """Set the modes that the body names, as `{"key": {"pricing.pins": "deny"}}`."""
    changed = await permissions.change(session, caller, data, clock.now())
    return msgspec.convert(changed, PlanPermissions)


# The time of these requests is bounded, because creating a plan waits for other writers and reads
# the cards of searches.
BOUNDED = {"session": Provide(provide_bounded_session)}
router = Router(
    path="",
    route_handlers=[propose_plan, list_plans, read_plan],
    dependencies=BOUNDED,
    request_max_body_size=PLAN_BYTES,
    tags=["agent work"],
)
deciding = Router(
    path="",
    route_handlers=[read_permissions, change_permissions, confirm_plan, decline_plan],
    dependencies=BOUNDED,
    tags=["agent work"],
)
