"""JSON routes for signing in and out, and for accepting an invitation.

The pages of `sign_in_pages.py` call the same operations.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.enums import MediaType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_SESSION, BY_SESSION, admitting, among_strangers
from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import HandlerOptions
from cardsync.shop.accounts import invitations, own_sessions
from cardsync.shop.accounts.browser_session import (
    PRIVATE,
    begun,
    changed_own,
    cookie_of,
    signed_in,
    signed_out,
    who_asks,
)
from cardsync.shop.accounts.own_account import OwnAccountChange, Password
from cardsync.shop.accounts.schemas import (
    MemberBody,
    OwnSession,
    OwnSessions,
    SessionBody,
    SignedOut,
)
from cardsync.shop.limits import EMAIL_CHARACTERS
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_MEMBERS,
    WITH_JSON_BODY,
    ApiRequest,
    Deleted,
    problems,
)

# The options of routes for signed-in members. Other routes of the same path are for visitors
# without a session, so the options are set per route.
SIGNED_IN: HandlerOptions = {
    "middleware": [admitting],
    "opt": BY_SESSION,
    "security": [A_SESSION],
}
STRANGERS = (
    errors.RateLimited,
    errors.CsrfFailed,
    errors.AccountSuspended,
    errors.ServiceUnavailable,
)


class SignIn(msgspec.Struct):
    email: Annotated[str, msgspec.Meta(max_length=EMAIL_CHARACTERS)]
    password: Password


class Acceptance(msgspec.Struct):
    """The acceptance of an invitation. A member who has joined and only chooses a new password may
    omit `name`.
    """

    password: Password
    name: Annotated[str, msgspec.Meta(max_length=limits.MEMBER_NAME_CHARACTERS)] | None = None


class OwnAccountChanged(msgspec.Struct):
    changed: list[str]
    """The names of the changed fields: name, email, password"""
    member: MemberBody
    """The member after the change"""


@post(
    "/session",
    status_code=200,
    middleware=[among_strangers],
    request_max_body_size=limits.SIGN_IN_BYTES,
    responses=problems(*STRANGERS, *WITH_JSON_BODY, errors.InvalidCredentials),
)
async def sign_in(
    request: ApiRequest,
    database: Database,
    settings: Settings,
    data: SignIn,
) -> Response[SessionBody]:
    """Sign in with email address and password. Sets the session's cookie; the answer has the
    session's CSRF token.
    """
    who = await signed_in(request, database, settings, data.email, data.password)
    return begun(who, settings)


@post(
    "/invitations/{token:str}",
    status_code=201,
    middleware=[among_strangers],
    request_max_body_size=limits.SIGN_IN_BYTES,
    responses=problems(*STRANGERS, *WITH_JSON_BODY, errors.NotFound),
)
async def accept_invitation(
    token: str,
    database: Database,
    settings: Settings,
    data: Acceptance,
) -> Response[SessionBody]:
    """Join with a name and a password, or choose a new password. Begins a session.

    The link works once.
    """
    who = await invitations.accept(database, settings, token, data.name, data.password)
    return begun(who, settings, 201)


@get("/session", **SIGNED_IN, responses=problems(*BEHIND_A_KEY, errors.SessionRequired))
async def read_session(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
) -> Response[SessionBody]:
    """The signed-in member, and the session's CSRF token."""
    return Response(
        struct_of(SessionBody, await who_asks(session, caller, request)),
        media_type=MediaType.JSON,
        headers=PRIVATE,
    )


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
    """End this session or, with `everywhere`, all sessions of this member."""
    await signed_out(session, caller, request, everywhere=everywhere)
    return Response(
        SignedOut(True),
        media_type=MediaType.JSON,
        headers=PRIVATE,
        cookies=[cookie_of(settings, "")],
    )


@patch(
    "/members/me",
    **SIGNED_IN,
    request_max_body_size=limits.SIGN_IN_BYTES,
    responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY),
)
async def change_own_account(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
    data: OwnAccountChange,
) -> OwnAccountChanged:
    """Change the member's own name, email address or password. A new address or password is
    reported by mail to the previous address. A new password ends the member's other sessions.
    """
    changed = await changed_own(database, caller, request, settings, data)
    async with database.tenant(caller.seller_id) as session:
        who = await who_asks(session, caller, request)
    return OwnAccountChanged(changed, struct_of(MemberBody, who))


@get("/sessions", **SIGNED_IN, responses=problems(*BEHIND_A_KEY, errors.SessionRequired))
async def list_sessions(caller: Caller, session: AsyncSession, settings: Settings) -> OwnSessions:
    """The member's sessions, the session that was used last first."""
    found = await own_sessions.sessions(session, caller, settings, clock.now())
    return OwnSessions([struct_of(OwnSession, row, caller) for row in found])


@delete(
    "/sessions/{member_session_id:int}",
    status_code=200,
    **SIGNED_IN,
    responses=problems(*FOR_MEMBERS, errors.NotFound),
)
async def end_session(member_session_id: int, caller: Caller, session: AsyncSession) -> Deleted:
    """End one of the member's sessions."""
    await own_sessions.end(session, caller, member_session_id)
    return Deleted(True)


router = Router(
    path="/api",
    route_handlers=[
        sign_in,
        read_session,
        sign_out,
        list_sessions,
        end_session,
        change_own_account,
        accept_invitation,
    ],
    tags=["members"],
)
