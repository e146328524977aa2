"""Rollbacks over HTTP: asked for with their diff, looked at, cancelled before the agent has
them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from litestar import Response, Router, get, post
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.database.session import Database
from cardsync.money import dollars, to_units
from cardsync.pricing.models import PriceRollback
from cardsync.pricing.rollback import prepare, rollbacks
from cardsync.pricing.rollback.scope import diff_of, read_scope
from cardsync.settings import Settings
from cardsync.web.request import FOR_OWNERS, READ_BY_OWNERS, WITH_JSON_BODY, problems

State = Literal["requested", "ready", "served", "applied", "failed", "expired", "cancelled"]


class RollbackRequest(msgspec.Struct):
    """Exactly one of run_id, rule_id, list (its id or slug) and since.

    With dry_run nothing is kept.
    """

    run_id: int | None = None
    rule_id: int | None = None
    list: int | str | None = None
    since: str | None = None
    dry_run: bool = False


class RolledBackCard(msgspec.Struct):
    """`price` is what the card goes back to, `target_price` what it is asked for now."""

    marketplace_id: int
    product_name: str
    current_price: str | None
    target_price: str | None
    price: str


CardDiff = list[RolledBackCard]


class RollbackShown(msgspec.Struct):
    """`diff` is the first of the cards. A dry run has neither id nor state."""

    id: int | None
    state: State | None
    cards: int
    diff: CardDiff
    run_id: int | None = None
    rule_id: int | None = None
    list: int | None = None
    since: str | None = None
    error: dict[str, Any] | None = None
    requested_at: str | None = None
    ready_at: str | None = None
    served_at: str | None = None
    finished_at: str | None = None
    expires_at: str | None = None


class RollbackList(msgspec.Struct):
    rollbacks: list[RollbackShown]


_TIMES = ("requested_at", "ready_at", "served_at", "finished_at", "expires_at")
_AMOUNTS = ("current_price", "target_price", "price")


def _cards(diff: rollbacks.Diff) -> CardDiff:
    told = [
        row | {name: row[name] and dollars(to_units(row[name])) for name in _AMOUNTS}
        for row in diff
    ]
    return msgspec.convert(told, CardDiff)


def _shown(rollback: PriceRollback, diff: rollbacks.Diff, now: datetime) -> RollbackShown:
    moments = {name: getattr(rollback, name) for name in _TIMES}
    times = {name: at and clock.rfc3339(at) for name, at in moments.items()}
    told: dict[str, Any] = {
        "id": rollback.id,
        "state": rollbacks.state_at(rollback, now),
        "cards": rollback.cards,
        "diff": _cards(diff),
    }
    return msgspec.convert(told | rollback.scope | times | {"error": rollback.error}, RollbackShown)


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
        return Response(RollbackShown(None, None, cards, _cards(diff), **scope), status_code=200)
    lasts = timedelta(seconds=settings.rollback_seconds)
    async with database.tenant(caller.seller_id) as session:
        rollback, is_new = await prepare.request(session, caller, scope, cards, now, lasts)
        if not is_new and rollback.state != "requested":
            diff = await rollbacks.diff_shown(session, rollback)
    return Response(_shown(rollback, diff, now), status_code=201)


@get("/rollbacks", responses=problems(*READ_BY_OWNERS))
async def list_rollbacks(caller: Caller, session: AsyncSession) -> RollbackList:
    """The newest first, without their diffs."""
    now = clock.now()
    return RollbackList(
        [_shown(rollback, [], now) for rollback in await rollbacks.newest(session, caller)]
    )


@get("/rollbacks/{rollback_id:int}", responses=problems(*READ_BY_OWNERS, errors.NotFound))
async def read_rollback(caller: Caller, session: AsyncSession, rollback_id: int) -> RollbackShown:
    """One rollback with its diff."""
    rollback = await rollbacks.read(session, caller, rollback_id)
    return _shown(rollback, await rollbacks.diff_shown(session, rollback), clock.now())


@post(
    "/rollbacks/{rollback_id:int}/cancel",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.NotCancellable),
)
async def cancel_rollback(caller: Caller, session: AsyncSession, rollback_id: int) -> RollbackShown:
    """Before it is served. Prices stay as they are."""
    rollback = await rollbacks.cancel(session, caller, rollback_id, clock.now())
    return _shown(rollback, await rollbacks.diff_shown(session, rollback), clock.now())


router = Router(
    path="/pricing",
    route_handlers=[request_rollback, list_rollbacks, read_rollback, cancel_rollback],
    tags=["pricing"],
)
