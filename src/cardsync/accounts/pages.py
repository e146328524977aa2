"""The pages of members: sign in, accept an invitation, the account with signing out, its credits.

Forms without scripts; the same operations as JSON.
"""

from __future__ import annotations

from datetime import UTC
from typing import Any
from urllib.parse import parse_qs

from litestar import MediaType, Request, Response, Router, get, post
from litestar.datastructures import Cookie
from litestar.exceptions import NotFoundException
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors, limits
from cardsync.access import sessions, tokens
from cardsync.access.admission import BY_SESSION, admitting, among_strangers, session_token
from cardsync.access.caller import Caller
from cardsync.accounts import invitations
from cardsync.accounts.session_routes import cookie_of, signed_in, signed_out, who_asks
from cardsync.credits import ledger
from cardsync.credits.models import CreditTransaction
from cardsync.database.session import Database
from cardsync.settings import Settings
from cardsync.web import markup
from cardsync.web.markup import HEADERS, Html, LedgerLine
from cardsync.web.request import ApiRequest, storable

ASSETS = {"pages.css": "text/css", "mark.svg": "image/svg+xml"}
DONE = {"here": "You are signed out.", "everywhere": "You are signed out on all your devices."}
HEADINGS = {
    403: "Not allowed",
    404: "This link is not good any more",
    429: "Too many attempts",
    503: "One moment, please",
}
FIELDS = 20
LEDGER_SHOWN = 200


def _page(content: Html, status: int = 200, headers: dict[str, str] | None = None) -> Response[str]:
    return Response(
        str(content),
        status_code=status,
        media_type=MediaType.HTML,
        headers=HEADERS | (headers or {}),
    )


def _go(path: str, cookie: Cookie | None = None) -> Response[str]:
    headers = HEADERS | {"Location": path}
    return Response(
        "",
        status_code=303,
        media_type=MediaType.TEXT,
        headers=headers,
        cookies=[cookie] if cookie else [],
    )


def _refused(request: Request[Any, Any, Any], exc: errors.Problem) -> Response[str]:
    """What the pages' own forms do not show beside their fields."""
    if isinstance(exc, errors.Unauthorized):
        return _go("/sign-in")
    heading = HEADINGS.get(exc.status, "This did not work")
    return _page(markup.message(heading, _sentence(exc)), exc.status, exc.headers)


def _sentence(problem: errors.Problem) -> str:
    text = str(problem)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


async def _form(request: ApiRequest) -> dict[str, str]:
    try:
        fields = parse_qs(
            (await request.body()).decode(), keep_blank_values=True, max_num_fields=FIELDS
        )
    except ValueError as e:
        raise errors.BadRequest("the form cannot be read") from e
    return {name: str(storable(values[0])) for name, values in fields.items()}


@get("/sign-in")
async def sign_in_page(
    request: ApiRequest, database: Database, settings: Settings
) -> Response[str]:
    token = session_token(request.scope)
    if token and await _is_good(request, database, settings, token):
        return _go("/account")
    return _page(markup.sign_in(done=DONE.get(request.query_params.get("signed_out", ""))))


async def _is_good(request: ApiRequest, database: Database, settings: Settings, token: str) -> bool:
    try:
        caller = await sessions.caller_with(
            database, request.app.state.session_ring, token, settings
        )
    except errors.Unauthorized:
        return False
    return not caller.suspended


@post("/sign-in", middleware=[among_strangers])
async def sign_in(request: ApiRequest, database: Database, settings: Settings) -> Response[str]:
    form = await _form(request)
    email = form.get("email", "")
    try:
        who = await signed_in(request, database, settings, email, form.get("password", ""))
    except (errors.InvalidCredentials, errors.AccountSuspended, errors.RateLimited) as e:
        return _page(markup.sign_in(email, problem=_sentence(e)), e.status, e.headers)
    return _go("/account", cookie_of(settings, who.token))


@get("/invitations/{token:str}", middleware=[among_strangers])
async def invitation_page(token: str, database: Database) -> Response[str]:
    return _page(await _invitation(database, token))


@post("/invitations/{token:str}", middleware=[among_strangers])
async def accept_invitation(
    request: ApiRequest, token: str, database: Database, settings: Settings
) -> Response[str]:
    form = await _form(request)
    name = form.get("name", "")
    try:
        who = await invitations.accept(database, settings, token, name, form.get("password", ""))
    except errors.InvalidPayload as e:
        return _page(await _invitation(database, token, name=name, problem=_sentence(e)), e.status)
    return _go("/account", cookie_of(settings, who.token))


async def _invitation(database: Database, token: str, **given: str) -> Html:
    async with database.shared() as session:
        member, seller = await invitations.invited(session, token)
    joined = member.password_hash is not None
    return markup.invitation(seller, member.role, member.email, joined=joined, **given)


@get("/account", middleware=[admitting], opt=BY_SESSION)
async def account(request: ApiRequest, caller: Caller, session: AsyncSession) -> Response[str]:
    who = await who_asks(request, caller, session)
    return _page(
        markup.account(who.seller_name, who.name, who.email, who.role, tokens.csrf_token(who.token))
    )


@get("/account/credits", middleware=[admitting], opt=BY_SESSION)
async def credits_page(caller: Caller, database: Database, settings: Settings) -> Response[str]:
    """Where `top_up_path` leads."""
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        balance, rows = await ledger.history(session, caller.seller_id, LEDGER_SHOWN + 1)
    shown = [_ledger_line(row) for row in rows[:LEDGER_SHOWN]]
    complete = len(rows) <= LEDGER_SHOWN
    return _page(markup.credits(balance, shown, settings.credits_top_up.strip(), complete=complete))


def _ledger_line(row: CreditTransaction) -> LedgerLine:
    moment = row.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return LedgerLine(moment, row.kind, row.reason or "", row.amount, row.balance_after)


@post("/sign-out", middleware=[among_strangers])
async def sign_out(request: ApiRequest, database: Database, settings: Settings) -> Response[str]:
    """A form carries its CSRF token in a field.

    Who is signed out already has what was asked for.
    """
    form, token = await _form(request), session_token(request.scope)
    where = "everywhere" if form.get("everywhere") == "true" else "here"
    gone = _go(f"/sign-in?signed_out={where}", cookie_of(settings, ""))
    if token is None:
        return gone
    if not tokens.csrf_is_right(token, form.get("csrf_token")):
        raise errors.CsrfFailed("this form is not of your session; go back and load the page again")
    try:
        caller = await sessions.caller_with(
            database, request.app.state.session_ring, token, settings
        )
    except errors.Unauthorized:
        return gone
    async with database.tenant(caller.seller_id) as session:
        await signed_out(request, caller, session, everywhere=where == "everywhere")
    return gone


@get("/pages/{name:str}")
async def asset(name: str) -> Response[str]:
    if name not in ASSETS:
        raise NotFoundException
    headers = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}
    return Response(markup.asset(name), media_type=ASSETS[name], headers=headers)


router = Router(
    path="/",
    route_handlers=[
        sign_in_page, sign_in, invitation_page, accept_invitation, account, credits_page, sign_out, asset,
    ],
    exception_handlers={errors.Problem: _refused},
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)  # fmt: skip
