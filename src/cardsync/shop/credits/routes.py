"""The HTTP route POST /sync/skip_wait, which spends a credit to sync during the cooldown."""

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
    """Refuse a request without a valid idempotency key. This is a guard, so that the key is checked
    before the rest of the request.
    """
    # If the header is sent twice, the joined value contains a space, so it is refused.
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
    """Spend one credit to sync during the cooldown. The agent begins the sync at its next poll.

    The cooldown itself does not change.
    """
    return await credits.skip_wait(session, caller, idempotency_key, clock.now(), settings)


router = Router(path="", route_handlers=[skip_wait], tags=["credits"])
