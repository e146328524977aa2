"""Rollbacks over HTTP: asked for with their diff, looked at, cancelled before the agent has
them.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
from litestar import Response, Router, get, post
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.database.session import Database
from cardsync.pricing.rollback import prepare, rollbacks
from cardsync.pricing.rollback.scope import diff_of, read_scope
from cardsync.pricing.rollback.shown import RollbackList, RollbackShown, diff_body, rollback_body
from cardsync.settings import Settings
from cardsync.web.request import FOR_OWNERS, READ_BY_OWNERS, WITH_JSON_BODY, problems


class RollbackRequest(msgspec.Struct):
    """Exactly one of run_id, rule_id, list (its id or slug) and since.

    With dry_run nothing is kept.
    """

    run_id: int | None = None
    rule_id: int | None = None
    list: int | str | None = None
    since: str | None = None
    dry_run: bool = False


@post(
    "/rollbacks",
    status_code=201,
    opt=WRITES,
    responses=problems(
        *FOR_OWNERS, *WITH_JSON_BODY, errors.NotFound, errors.MutexHeld, errors.RollbackOpen
    ),
)
async def request_rollback(
    caller: Caller, database: Database, settings: Settings, data: RollbackRequest
) -> Response[RollbackShown]:
    """Bring prices back to what they were; the agent imports them as soon as they are prepared.

    Asked again, it is the same rollback.
    """
    now = clock.now()
    # Looked at first, without the seller's row: polls do not wait for it.
    async with database.bounded(caller.seller_id, settings.read_seconds, snapshot=True) as session:
        scope = await read_scope(session, caller, msgspec.to_builtins(data))
        cards, diff = await diff_of(session, caller.seller_id, scope)
    if data.dry_run:
        return Response(RollbackShown(None, None, cards, diff_body(diff), **scope), status_code=200)
    lasts = timedelta(seconds=settings.rollback_seconds)
    async with database.tenant(caller.seller_id) as session:
        rollback, is_new = await prepare.request(session, caller, scope, cards, now, lasts)
        if not is_new and rollback.state != "requested":
            diff = await rollbacks.diff_shown(session, rollback)
    return Response(rollback_body(rollback, diff, now), status_code=201)


@get("/rollbacks", responses=problems(*READ_BY_OWNERS))
async def list_rollbacks(caller: Caller, session: AsyncSession) -> RollbackList:
    """The newest first, without their diffs."""
    now = clock.now()
    return RollbackList(
        [rollback_body(rollback, [], now) for rollback in await rollbacks.newest(session, caller)]
    )


@get("/rollbacks/{rollback_id:int}", responses=problems(*READ_BY_OWNERS, errors.NotFound))
async def read_rollback(caller: Caller, session: AsyncSession, rollback_id: int) -> RollbackShown:
    """One rollback with its diff."""
    rollback = await rollbacks.read(session, caller, rollback_id)
    return rollback_body(rollback, await rollbacks.diff_shown(session, rollback), clock.now())


@post(
    "/rollbacks/{rollback_id:int}/cancel",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.NotCancellable),
)
async def cancel_rollback(caller: Caller, session: AsyncSession, rollback_id: int) -> RollbackShown:
    """Before it is served. Prices stay as they are."""
    rollback = await rollbacks.cancel(session, caller, rollback_id, clock.now())
    return rollback_body(rollback, await rollbacks.diff_shown(session, rollback), clock.now())


router = Router(
    path="/pricing",
    route_handlers=[request_rollback, list_rollbacks, read_rollback, cancel_rollback],
    tags=["pricing"],
)
