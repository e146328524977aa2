"""POST /sync/skip_wait: spends a credit to sync inside the cooldown."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Router, post
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_SESSION, BY_EITHER
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import SYNC_REQUEST
from cardsync.platform import clock, errors
from cardsync.platform.settings import Settings
from cardsync.shop.credits import skip_wait as credits
from cardsync.shop.credits.skip_wait import SkipWait
from cardsync.shop.errors import IdempotencyKeyRequired, InsufficientBalance
from cardsync.web.request import FOR_OWNERS, problems

HEADER = "X-Idempotency-Key"


def requires_idempotency_key(
    connection: ASGIConnection[Any, Any, Any, Any],
    _: BaseRouteHandler,
) -> None:
    """A guard, because a missing key is refused before anything else of the request is looked
    at.
    """
    # Two headers are no key either: joined, as HTTP reads them, they hold a space.
    credits.check_key(", ".join(connection.headers.getall(HEADER, [])), HEADER)


@post(
    "/sync/skip_wait",
    status_code=200,
    opt=SYNC_REQUEST | BY_EITHER,
    security=[A_SESSION],
    guards=[requires_idempotency_key],
    responses=problems(
        *FOR_OWNERS,
        IdempotencyKeyRequired,
        errors.InvalidPayload,
        InsufficientBalance,
        errors.MutexHeld,
    ),
)
async def skip_wait(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    idempotency_key: Annotated[
        str,
        HeaderParameter(
            name=HEADER,
            description="1 to 255 visible ASCII characters; the same key is charged only once",
        ),
    ],
) -> SkipWait:
    """Spend one credit on a sync inside the cooldown; the next poll hands it out.

    The cooldown itself goes on.
    """
    return await credits.skip_wait(session, caller, idempotency_key, clock.now(), settings)


router = Router(path="", route_handlers=[skip_wait], tags=["credits"])
