"""Middleware that finds the caller of a request by its API key, token or session, and puts the
caller into `ADMITTED` before the body is read.

A route accepts API keys. Its `opt` may add that it also accepts sessions (`BY_EITHER`), sessions
and tokens (`BY_ANY`), or only sessions (`BY_SESSION`). A session or a token on any other route is
refused with `key_required`. A token needs the scope `mcp:read` for a request that changes nothing,
and `mcp:write` otherwise. If there is an Authorization header, a cookie is ignored. This is
middleware and not a guard, because Litestar would give a guard a new copy of the route's
description for every request.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from structlog.contextvars import bind_contextvars, reset_contextvars

from cardsync.access import access_tokens, patience, tokens
from cardsync.access.audience import READ, WRITE, audience, metadata_url
from cardsync.access.caller import ADMITTED, Caller, caller_of, header, owner_of
from cardsync.access.rate_limits.check_limits import RateLimits
from cardsync.access.sessions import caller_with
from cardsync.platform import errors
from cardsync.platform.database import seller_slots
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.platform.limits import LARGEST_ID
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import HandlerOptions

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send


class Callers(Enum):
    EITHER = auto()
    ANY = auto()
    SESSION = auto()
    BEARER = auto()


class Within(NamedTuple):
    """Marks a request that this process sends to itself for an assistant. The request may use the
    same routes as a token. `caller` was admitted with the assistant's request; if it is None, the
    credential is checked again.

    A client cannot set this mark with headers, because only code in this process can put an object
    into the scope.
    """

    caller: Caller | None


WITHIN: Final = ScopeValue[Within]("cardsync.within")


_OPTION = "callers"
_READS = "reads"
BY_EITHER = {_OPTION: Callers.EITHER}
BY_ANY = {_OPTION: Callers.ANY}
BY_SESSION = {_OPTION: Callers.SESSION}
# The route accepts a key or a token, but no browser session.
BY_BEARER = {_OPTION: Callers.BEARER}
# For the pages' routes. A form sends the CSRF token in a field, which
# `dashboard/form_handlers.post_form` checks before it reads any other field.
BY_FORM = {_OPTION: Callers.SESSION, "token_in_form": True}
# Marks a POST route that changes nothing.
READS: dict[str, object] = {_READS: True}
# Security requirements as OpenAPI writes them. If a route names no scopes, its method decides which
# scope a token needs.
A_TOKEN = {"token": list[str]()}
A_READING_TOKEN = {"token": [READ]}
A_KEY = {"api_key": list[str]()}
A_SESSION = {"session": list[str]()}
# For routes that members, keys and tokens may use.
BY_ANYBODY: HandlerOptions = {"opt": BY_ANY, "security": [A_SESSION, A_TOKEN]}


def admitting(app: ASGIApp) -> ASGIApp:
    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        opt = scope["route_handler"].opt
        patience.allow(scope, opt, scope["litestar_app"].state.settings)
        callers = opt.get(_OPTION)
        sent = header(scope, b"authorization")
        by_cookie = sent is None and callers is not Callers.BEARER
        token = session_token(scope) if by_cookie else None
        within = WITHIN.find(scope)
        if within and within.caller is not None:
            caller = await _admit_again(scope, within.caller, opt)
        elif token:
            caller = await _admit_member(scope, token, opt)
        elif bearer := access_tokens.of_header(sent):
            caller = await _admit_token(scope, bearer, opt)
        else:
            caller = await _admit_key(scope, opt)
        if callers is Callers.SESSION and not token:
            raise errors.SessionRequired
        if within and callers is not Callers.ANY:
            raise errors.KeyRequired
        _refuse_no_ids(scope)
        seller_slots.asked_by(caller.seller_id)
        ADMITTED.put(scope, caller)
        ids = bind_contextvars(seller_id=caller.seller_id)
        try:
            await app(scope, receive, send)
        finally:
            reset_contextvars(**ids)

    return admitted


def _refuse_no_ids(scope: Scope) -> None:
    """Raise NotFound if an ID in the path is larger than any stored ID."""
    for name, value in scope["path_params"].items():
        if name.endswith("id") and isinstance(value, int) and abs(value) > LARGEST_ID:
            raise errors.NotFound(f"nothing found with ID {value}")


def among_strangers(app: ASGIApp) -> ASGIApp:
    """Middleware for routes that need no credentials but create some. It refuses requests from
    other sites, and limits the requests from an address.
    """

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        # A read may come from another site, because emails link to these pages.
        if scope.get("method") not in tokens.SAFE_METHODS:
            refuse_other_sites(scope)
        await app(scope, receive, send)

    return among_programs(admitted)


def among_programs(app: ASGIApp) -> ASGIApp:
    """Middleware that limits the requests from an address, for routes to which a browser sends no
    member's cookie.
    """

    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        await scope["litestar_app"].state.rate_limits.admit_anonymous(scope)
        await app(scope, receive, send)

    return admitted


async def _admit_key(scope: Scope, opt: Mapping[str, object]) -> Caller:
    state = scope["litestar_app"].state
    limits: RateLimits = state.rate_limits
    try:
        seller_id, key_id = await owner_of(state.key_ring, header(scope, b"authorization"))
        buckets = limits.of_key(scope, key_id, opt)
        limits.refuse_flood(scope, buckets)
        caller = await caller_of(state.database, seller_id, key_id)
    except errors.Unauthorized:
        await limits.admit_anonymous(scope)
        raise
    except errors.AccountSuspended:
        # The suspended account's agents keep polling, so the key's rate limits apply.
        await limits.admit_key(scope, buckets)
        raise
    await limits.admit_key(scope, buckets)
    return caller


async def _admit_token(scope: Scope, token: str, opt: Mapping[str, object]) -> Caller:
    state = scope["litestar_app"].state
    limits: RateLimits = state.rate_limits
    host = header(scope, b"host")
    try:
        owner = await access_tokens.owner_of_token(state.token_ring, token)
        buckets = limits.of_token(scope, owner.token_id, owner.grant_id, opt)
        limits.refuse_flood(scope, buckets)
        caller = await access_tokens.caller_with_token(
            state.database, owner.seller_id, owner.token_id, audience(state.settings, host)
        )
    except errors.Unauthorized:
        await limits.admit_anonymous(scope)
        raise
    except (errors.AccountSuspended, errors.PaidPlanRequired):
        await limits.admit_key(scope, buckets)
        raise
    await limits.admit_key(scope, buckets)
    callers = opt.get(_OPTION)
    if callers is Callers.SESSION:
        raise errors.SessionRequired
    if callers not in (Callers.ANY, Callers.BEARER):
        raise errors.KeyRequired
    _need_scope_of(scope, caller, opt)
    return caller


async def _admit_again(
    scope: Scope,
    caller: Caller,
    opt: Mapping[str, object],
) -> Caller:
    """Admit a call that an assistant's request makes. `caller` was admitted with that request."""
    limits: RateLimits = scope["litestar_app"].state.rate_limits
    await limits.admit_further(scope, caller.identity, opt)
    _need_scope_of(scope, caller, opt)
    return caller


def _need_scope_of(scope: Scope, caller: Caller, opt: Mapping[str, object]) -> None:
    """Check the scope for the request's method. Raises InsufficientScope."""
    reads = opt.get(_READS) or scope.get("method") in tokens.SAFE_METHODS
    need_scope(scope, caller, READ if reads else WRITE)


def need_scope(scope: Scope, caller: Caller, needed: str) -> None:
    """Check that the caller has a scope. Raises InsufficientScope."""
    url = metadata_url(scope["litestar_app"].state.settings, header(scope, b"host"))
    access_tokens.need_scope(caller.identity.scopes, needed, url)


async def _admit_member(scope: Scope, token: str, opt: Mapping[str, object]) -> Caller:
    state = scope["litestar_app"].state
    limits: RateLimits = state.rate_limits
    try:
        caller = await caller_with(
            state.database,
            state.session_ring,
            token,
            state.settings,
            header(scope, b"user-agent"),
        )
    except errors.Unauthorized:
        await limits.admit_anonymous(scope)
        raise
    assert caller.member_id is not None
    await limits.admit_member(scope, caller.member_id, opt)
    if caller.account.suspended:
        raise errors.AccountSuspended
    if _OPTION not in opt:
        raise errors.KeyRequired
    if scope.get("method") not in tokens.SAFE_METHODS:
        refuse_other_sites(scope)
        in_form = "token_in_form" in opt
        if not in_form and not tokens.csrf_is_right(token, header(scope, b"x-csrf-token")):
            raise errors.CsrfFailed(
                "X-CSRF-Token is missing or not from this session; get it from GET /api/session"
            )
    return caller


def session_token(scope: Scope) -> str | None:
    """Return the session token in the request's cookie."""
    settings: Settings = scope["litestar_app"].state.settings
    cookies = [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
    return tokens.session_token(cookies, settings.origin)


def need_form_token(scope: Scope, given: str | None) -> None:
    """Check that a form's token belongs to the request's session. Raises CsrfFailed."""
    token = session_token(scope)
    if token is None or not tokens.csrf_is_right(token, given):
        raise errors.CsrfFailed("this form is not from your session; go back and reload the page")


def refuse_other_sites(scope: Scope) -> None:
    settings: Settings = scope["litestar_app"].state.settings
    fetch_site, origin, host = (
        header(scope, name) for name in (b"sec-fetch-site", b"origin", b"host")
    )
    hosts = [host] if host is not None and settings.is_own_name(host) else []
    if not tokens.comes_from_here(fetch_site, origin, hosts, settings.origin):
        raise errors.CsrfFailed("this request is from another site")
