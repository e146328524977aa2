"""HTTP routes of passkeys: a signed-in member's own passkeys, and signing in with a passkey. The
browser's part is `dashboard/static/js/passkey.js`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, Router, delete, get, post
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import (
    A_SESSION,
    BY_SESSION,
    admitting,
    among_strangers,
    session_token,
)
from cardsync.access.caller import Caller, header
from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject
from cardsync.shop.accounts import passkeys
from cardsync.shop.accounts.browser_session import begun
from cardsync.shop.accounts.schemas import (
    PasskeyBody,
    PasskeyOptions,
    PasskeysBody,
    SessionBody,
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

STRANGERS = (
    errors.RateLimited,
    errors.CsrfFailed,
    errors.ServiceUnavailable,
)


class NewPasskey(msgspec.Struct):
    """A new passkey. `credential` is the `toJSON` of the result of
    `navigator.credentials.create`.
    """

    name: Annotated[str, msgspec.Meta(max_length=EMAIL_CHARACTERS)]
    credential: JsonObject


class PasskeySignIn(msgspec.Struct):
    """A sign-in. `credential` is the `toJSON` of the result of `navigator.credentials.get`."""

    credential: JsonObject


def _place(request: ApiRequest, settings: Settings) -> passkeys.Place:
    return passkeys.place_of(settings, header(request.scope, b"host"))


@get("/passkeys", responses=problems(*BEHIND_A_KEY, errors.SessionRequired))
async def list_passkeys(caller: Caller, session: AsyncSession) -> PasskeysBody:
    """The member's own passkeys, oldest first."""
    return PasskeysBody(
        [struct_of(PasskeyBody, row) for row in await passkeys.listed(session, caller)]
    )


@post(
    "/passkeys/options",
    status_code=200,
    responses=problems(*FOR_MEMBERS, errors.InvalidPayload),
)
async def begin_passkey(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
) -> PasskeyOptions:
    """Begin a new passkey. Returns the options for `navigator.credentials.create`, which are valid
    for five minutes.
    """
    place = _place(request, settings)
    return PasskeyOptions(await passkeys.begin(session, caller, place, clock.now()))


@post("/passkeys", status_code=201, responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY))
async def add_passkey(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
    data: NewPasskey,
) -> PasskeyBody:
    """Store the passkey that the member's browser made, under a name."""
    place, now = _place(request, settings), clock.now()
    made = await passkeys.add(database, caller, place, data.name, data.credential, now)
    return struct_of(PasskeyBody, made)


@delete(
    "/passkeys/{passkey_id:int}",
    status_code=200,
    responses=problems(*FOR_MEMBERS, errors.NotFound),
)
async def remove_passkey(passkey_id: int, caller: Caller, session: AsyncSession) -> Deleted:
    """Remove one of the member's passkeys, which can't be used to sign in any more."""
    await passkeys.remove(session, caller, passkey_id, clock.now())
    return Deleted(True)


@post(
    "/session/passkey/options",
    status_code=200,
    responses=problems(*STRANGERS, errors.InvalidPayload),
)
async def begin_sign_in(
    request: ApiRequest,
    database: Database,
    settings: Settings,
) -> PasskeyOptions:
    """Begin to sign in with a passkey. Returns the options for `navigator.credentials.get`, which
    are valid for five minutes.
    """
    place = _place(request, settings)
    return PasskeyOptions(await passkeys.begin_sign_in(database, place, clock.now()))


@post(
    "/session/passkey",
    status_code=200,
    responses=problems(
        *STRANGERS, *WITH_JSON_BODY, errors.InvalidCredentials, errors.AccountSuspended
    ),
)
async def sign_in_with_passkey(
    request: ApiRequest,
    database: Database,
    settings: Settings,
    data: PasskeySignIn,
) -> Response[SessionBody]:
    """Sign in with a passkey. Sets the session's cookie; the answer has the session's CSRF
    token.
    """
    rate_limits: RateLimits = request.app.state.rate_limits
    await rate_limits.admit_sign_in(request.scope, str(data.credential.get("id", ""))[:200])
    who = await passkeys.sign_in(
        database,
        settings,
        _place(request, settings),
        data.credential,
        clock.now(),
        session_token(request.scope),
    )
    return begun(who, settings)


router = Router(
    path="/api",
    route_handlers=[
        Router(
            path="",
            route_handlers=[list_passkeys, begin_passkey, add_passkey, remove_passkey],
            middleware=[admitting],
            opt=BY_SESSION,
            security=[A_SESSION],
        ),
        Router(
            path="",
            route_handlers=[begin_sign_in, sign_in_with_passkey],
            middleware=[among_strangers],
        ),
    ],
    request_max_body_size=limits.SIGN_IN_BYTES,
    tags=["members"],
)
