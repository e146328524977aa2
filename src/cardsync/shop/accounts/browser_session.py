"""Signs a member in or out in the browser, for the JSON routes and for the pages, and makes the
session's cookie.

`cookie_of` makes all cookies that cardsync sets.
"""

from __future__ import annotations

from litestar import Response
from litestar.datastructures import Cookie
from litestar.enums import MediaType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sessions, tokens
from cardsync.access.admission import session_token
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.access.sessions import SignedIn
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import own_account
from cardsync.shop.accounts.own_account import OwnAccountChange
from cardsync.shop.accounts.schemas import SessionBody
from cardsync.web.request import AnyRequest, ApiRequest

# The headers of answers about a session, which no cache may store.
PRIVATE = {"Cache-Control": "no-store"}


def cookie_of(settings: Settings, token: str) -> Cookie:
    return Cookie(
        tokens.cookie_name(settings.origin),
        value=token,
        path="/",
        max_age=settings.session_seconds if token else 0,
        secure=tokens.is_secure(settings.origin),
        httponly=True,
        samesite="lax",
    )


async def signed_in(
    request: ApiRequest,
    database: Database,
    settings: Settings,
    email: str,
    password: str,
) -> SignedIn:
    rate_limits: RateLimits = request.app.state.rate_limits
    await rate_limits.admit_sign_in(request.scope, email)
    return await sessions.sign_in(database, settings, email, password, session_token(request.scope))


def begun(who: SignedIn, settings: Settings, status: int = 200) -> Response[SessionBody]:
    """Return the answer for a new session, with the session's cookie."""
    return Response(
        struct_of(SessionBody, who),
        status_code=status,
        media_type=MediaType.JSON,
        headers=PRIVATE,
        cookies=[cookie_of(settings, who.token)],
    )


def _token(request: ApiRequest) -> str:
    """Return the token of the request's session."""
    token = session_token(request.scope)
    assert token is not None
    return token


async def changed_own(
    database: Database,
    caller: Caller,
    request: AnyRequest,
    settings: Settings,
    wanted: OwnAccountChange,
) -> list[str]:
    """Change the member's own account. Attempts with a wrong password are limited as for
    sign-ins.
    """
    if wanted.current_password is not None:
        rate_limits: RateLimits = request.app.state.rate_limits
        await rate_limits.admit_sign_in(request.scope, f"member {caller.member_id}")
    return await own_account.change(database, settings, caller, wanted, clock.now())


async def who_asks(session: AsyncSession, caller: Caller, request: ApiRequest) -> SignedIn:
    return await sessions.who(session, caller, _token(request))


async def signed_out(
    session: AsyncSession,
    caller: Caller,
    request: ApiRequest,
    *,
    everywhere: bool,
) -> None:
    if everywhere:
        assert caller.member_id is not None
        await sessions.end_all(session, caller.seller_id, caller.member_id)
    else:
        await sessions.sign_out(session, caller, _token(request))
