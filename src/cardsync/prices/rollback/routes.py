"""HTTP routes of rollbacks: request, read and cancel them."""

from __future__ import annotations

import msgspec
from litestar import Response, Router, get, post
from litestar.openapi.datastructures import ResponseSpec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.prices.errors import NotCancellable, RollbackOpen
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_rollback import ask_for
from cardsync.prices.rollback import rollbacks
from cardsync.prices.rollback.schemas import RollbackList, RollbackShown, diff_body, rollback_body
from cardsync.web.request import FOR_OWNERS, READ_BY_OWNERS, WITH_JSON_BODY, problems


class RollbackRequest(msgspec.Struct):
    """Exactly one of run_id, rule_id, list (an id or slug) and since is required.

    With dry_run nothing is stored.
    """

    run_id: int | None = None
    rule_id: int | None = None
    list: int | str | None = None
    """A list, by its id or slug"""
    since: str | None = None
    """The time whose prices are restored"""
    dry_run: bool = False


@post(
    "/rollbacks",
    status_code=201,
    opt=WRITES,
    responses={
        200: ResponseSpec(
            RollbackShown,
            description="A dry run: what the rollback would bring back; nothing is kept",
            generate_examples=False,
        ),
        **problems(
            *FOR_OWNERS,
            *WITH_JSON_BODY,
            errors.NotFound,
            errors.MutexHeld,
            RollbackOpen,
            errors.NeedsReview,
            errors.RefusedByGrant,
        ),
    },
)
async def request_rollback(
    caller: Caller,
    database: Database,
    settings: Settings,
    data: RollbackRequest,
) -> Response[RollbackShown]:
    """Restore earlier prices; the agent imports them as soon as they are prepared.

    A repeated request returns the same rollback.
    """
    now = clock.now()
    asked = await ask_for(
        database,
        caller,
        settings,
        msgspec.to_builtins(data),
        now,
        dry_run=data.dry_run,
    )
    if asked.rollback is None:
        diff = diff_body(asked.diff)
        return Response(
            RollbackShown(None, None, asked.cards, diff, **asked.scope),
            status_code=200,
        )
    return Response(rollback_body(asked.rollback, asked.diff, now), status_code=201)


@get("/rollbacks", responses=problems(*READ_BY_OWNERS))
async def list_rollbacks(caller: Caller, session: AsyncSession) -> RollbackList:
    """List the rollbacks, newest first, without their diffs."""
    now = clock.now()
    return RollbackList(
        [rollback_body(rollback, [], now) for rollback in await rollbacks.newest(session, caller)]
    )


@get("/rollbacks/{rollback_id:int}", responses=problems(*READ_BY_OWNERS, errors.NotFound))
async def read_rollback(caller: Caller, session: AsyncSession, rollback_id: int) -> RollbackShown:
    """Return one rollback with its diff."""
    rollback = await rollbacks.read(session, caller, rollback_id)
    return rollback_body(rollback, await rollbacks.diff_shown(session, rollback), clock.now())


@post(
    "/rollbacks/{rollback_id:int}/cancel",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.NotFound, NotCancellable, errors.RefusedByGrant),
)
async def cancel_rollback(caller: Caller, session: AsyncSession, rollback_id: int) -> RollbackShown:
    """Cancel a rollback before it is served. No price changes."""
    rollback = await writes.cancel_rollback(session, caller, rollback_id, clock.now())
    return rollback_body(rollback, await rollbacks.diff_shown(session, rollback), clock.now())


router = Router(
    path="/pricing",
    route_handlers=[request_rollback, list_rollbacks, read_rollback, cancel_rollback],
    tags=["pricing"],
)
