"""The settings' pages of credentials: the keys of agents, and a member's own passkeys and sessions.

A key is shown only once, on the page that answers its form.
"""

from __future__ import annotations

from typing import Any, Final

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.settings_pages import tabs_of
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import own_keys, own_sessions, passkeys
from cardsync.shop.accounts.schemas import OwnSession, PasskeyBody
from cardsync.web.forms import Form, read_form, sentence
from cardsync.web.request import reading


def _show(
    request: PageRequest, caller: Caller, template: str, status: int = 200, /, **values: Any
) -> Template:
    return show(request, caller, template, status, tabs=tabs_of(caller), **values)


async def _keys(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
    made: str = "",
) -> Template:
    body = await own_keys.listed(source, caller, clock.now())
    name = "" if made else read_form(request)["name"]
    return _show(
        request, caller, "settings_keys.html", shown=body, name=name, made=made, problem=problem
    )


@get("/settings/keys")
async def keys_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        return await _keys(request, caller, reads)


_AGAIN: Final = again(_keys, errors.AccountEnding, errors.InvalidPayload)


@post_form("/settings/keys", exception_handlers=_AGAIN)
async def make_key(
    request: PageRequest, caller: Caller, form: Form, session: AsyncSession
) -> Template:
    minted = await own_keys.mint(session, caller, form["name"], clock.now())
    return await _keys(request, caller, session, made=minted.api_key)


@post_form("/settings/keys/{key_id:int}/replace", exception_handlers=_AGAIN)
async def replace_key(
    request: PageRequest, caller: Caller, session: AsyncSession, settings: Settings, key_id: int
) -> Template:
    minted = await own_keys.replace(session, caller, settings, key_id, clock.now())
    return await _keys(request, caller, session, made=minted.api_key)


@post_form("/settings/keys/{key_id:int}/{mark:str}")
async def mark_key(caller: Caller, session: AsyncSession, key_id: int, mark: str) -> Response[str]:
    """Set whether the loss limits count a key's changes. The form's button is below a warning, so a
    click on it is the owner's confirmation.
    """
    if mark not in ("own-script", "limited"):
        raise errors.NotFound
    own = mark == "own-script"
    await own_keys.mark(session, caller, key_id, clock.now(), own_script=own, confirmed=True)
    return see("/settings/keys", message("key_own_script" if own else "key_limited"))


@post_form("/settings/keys/{key_id:int}/revoke")
async def revoke_key(caller: Caller, session: AsyncSession, key_id: int) -> Response[str]:
    await own_keys.revoke(session, caller, key_id, clock.now())
    return see("/settings/keys", message("key_revoked"))


@get("/settings/sign-in")
async def sign_in_ways(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
) -> Template:
    """Show the member's own passkeys and sessions."""
    async with reading(request) as reads:
        own, rows = await at_once(
            passkeys.listed(reads, caller),
            own_sessions.sessions(reads, caller, settings, clock.now()),
        )
    try:
        passkeys.place_of(settings, request.headers.get("host"))
        why_none = ""
    except errors.InvalidPayload as e:
        why_none = sentence(e)
    return _show(
        request,
        caller,
        "settings_sign_in.html",
        passkeys=[struct_of(PasskeyBody, row) for row in own],
        why_none=why_none,
        sessions=[struct_of(OwnSession, row, caller) for row in rows],
    )


@post_form("/settings/sign-in/{passkey_id:int}/remove")
async def remove_passkey(caller: Caller, session: AsyncSession, passkey_id: int) -> Response[str]:
    await passkeys.remove(session, caller, passkey_id, clock.now())
    return see("/settings/sign-in", message("passkey_removed"))


@post_form("/settings/sign-in/sessions/{session_id:int}/end")
async def end_session(caller: Caller, session: AsyncSession, session_id: int) -> Response[str]:
    await own_sessions.end(session, caller, session_id)
    return see("/settings/sign-in", message("session_ended"))


ROUTES: Final = [
    keys_page,
    make_key,
    replace_key,
    mark_key,
    revoke_key,
    sign_in_ways,
    remove_passkey,
    end_session,
]
