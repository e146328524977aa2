"""Signing in and out over JSON, and accepting an invitation.

The cookie is set here and nowhere else.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.datastructures import Cookie
from litestar.enums import MediaType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors, limits
from cardsync.access import sessions, tokens
from cardsync.access.admission import (
    A_SESSION,
    BY_SESSION,
    admitting,
    among_strangers,
    session_token,
)
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.admission import RateLimits
from cardsync.access.sessions import SignedIn
from cardsync.accounts import invitations
from cardsync.database.session import Database
from cardsync.settings import Settings
from cardsync.web.request import BEHIND_A_KEY, WITH_JSON_BODY, ApiRequest, problems

Password = Annotated[str, msgspec.Meta(max_length=limits.PASSWORD_CHARACTERS_MOST)]
# What is told of a session is told to its browser alone.
PRIVATE = {"Cache-Control": "no-store"}
# The other methods of the same address are strangers'.
SIGNED_IN: dict[str, Any] = {"middleware": [admitting], "opt": BY_SESSION, "security": [A_SESSION]}
STRANGERS = (
    errors.RateLimited,
    errors.CsrfFailed,
    errors.AccountSuspended,
    errors.ServiceUnavailable,
)


class SignIn(msgspec.Struct):
    email: Annotated[str, msgspec.Meta(max_length=limits.EMAIL_CHARACTERS)]
    password: Password


class Acceptance(msgspec.Struct):
    """`name` may be left out by who joined before and only chooses a new password."""

    password: Password
    name: Annotated[str, msgspec.Meta(max_length=limits.MEMBER_NAME_CHARACTERS)] | None = None


class MemberBody(msgspec.Struct):
    id: int
    name: str
    email: str
    role: str


class SellerBody(msgspec.Struct):
    id: int
    name: str


class SessionBody(msgspec.Struct):
    """Requests other than GET and HEAD carry `csrf_token` in X-CSRF-Token."""

    csrf_token: str
    member: MemberBody
    seller: SellerBody


class SignedOut(msgspec.Struct):
    deleted: bool


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


def _told(who: SignedIn) -> SessionBody:
    return SessionBody(
        tokens.csrf_token(who.token),
        MemberBody(who.member_id, who.name, who.email, who.role),
        SellerBody(who.seller_id, who.seller_name),
    )


def _begun(who: SignedIn, settings: Settings, status: int) -> Response[SessionBody]:
    cookie = cookie_of(settings, who.token)
    return Response(
        _told(who), status_code=status, media_type=MediaType.JSON, headers=PRIVATE, cookies=[cookie]
    )


@post(
    "/session",
    status_code=200,
    middleware=[among_strangers],
    request_max_body_size=limits.SIGN_IN_BYTES,
    responses=problems(*STRANGERS, *WITH_JSON_BODY, errors.InvalidCredentials),
)
async def sign_in(
    request: ApiRequest, database: Database, settings: Settings, data: SignIn
) -> Response[SessionBody]:
    """Begin a session: its cookie is set, its CSRF token told."""
    return _begun(
        await signed_in(request, database, settings, data.email, data.password), settings, 200
    )


async def signed_in(
    request: ApiRequest, database: Database, settings: Settings, email: str, password: str
) -> SignedIn:
    rate_limits: RateLimits = request.app.state.rate_limits
    await rate_limits.admit_sign_in(request.scope, email)
    return await sessions.sign_in(database, settings, email, password, session_token(request.scope))


@post(
    "/invitations/{token:str}",
    status_code=201,
    middleware=[among_strangers],
    request_max_body_size=limits.SIGN_IN_BYTES,
    responses=problems(*STRANGERS, *WITH_JSON_BODY, errors.NotFound),
)
async def accept_invitation(
    token: str, database: Database, settings: Settings, data: Acceptance
) -> Response[SessionBody]:
    """Join with a name and a password, or choose a new password; begins a session.

    The link is good once.
    """
    return _begun(
        await invitations.accept(database, settings, token, data.name, data.password), settings, 201
    )


@get("/session", **SIGNED_IN, responses=problems(*BEHIND_A_KEY, errors.SessionRequired))
async def read_session(
    request: ApiRequest, caller: Caller, session: AsyncSession
) -> Response[SessionBody]:
    """Who is signed in, and the session's CSRF token."""
    return Response(
        _told(await who_asks(request, caller, session)), media_type=MediaType.JSON, headers=PRIVATE
    )


def _own(request: ApiRequest, caller: Caller) -> tuple[int, str]:
    """Member and token of the session that let the caller in."""
    token = session_token(request.scope)
    assert token is not None
    assert caller.member_id is not None
    return caller.member_id, token


async def who_asks(request: ApiRequest, caller: Caller, session: AsyncSession) -> SignedIn:
    return await sessions.who(session, caller.seller_id, *_own(request, caller))


@delete(
    "/session",
    status_code=200,
    **SIGNED_IN,
    responses=problems(*BEHIND_A_KEY, errors.SessionRequired, errors.CsrfFailed),
)
async def sign_out(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    everywhere: bool = False,
) -> Response[SignedOut]:
    """End this session; with `everywhere`, every session of this member."""
    await signed_out(request, caller, session, everywhere=everywhere)
    return Response(
        SignedOut(True),
        media_type=MediaType.JSON,
        headers=PRIVATE,
        cookies=[cookie_of(settings, "")],
    )


async def signed_out(
    request: ApiRequest, caller: Caller, session: AsyncSession, *, everywhere: bool
) -> None:
    member_id, token = _own(request, caller)
    if everywhere:
        await sessions.end_all(session, caller.seller_id, member_id)
    else:
        await sessions.sign_out(session, caller.seller_id, member_id, token)


router = Router(
    path="/api",
    route_handlers=[sign_in, read_session, sign_out, accept_invitation],
    tags=["members"],
)
