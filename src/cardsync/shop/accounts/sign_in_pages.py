"""The pages on which people sign in or out, or accept an invitation.

The pages are forms without scripts, and call the same operations as the JSON routes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from litestar import Response, Router, get
from litestar.response import Template

from cardsync.access import sessions
from cardsync.access.admission import among_strangers, need_form_token, session_token
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import deletion, first_run, invitations
from cardsync.shop.accounts.browser_session import cookie_of, signed_in, signed_out
from cardsync.shop.accounts.passkeys import has_name
from cardsync.web import pages
from cardsync.web.forms import Form, go, public_form, refused, sentence
from cardsync.web.pages import page
from cardsync.web.public_demo import sign_in_of
from cardsync.web.request import AnyResponse, ApiRequest

DONE = {
    "here": "You are signed out.",
    "everywhere": "You are signed out on all your devices.",
    "deletion": "The account will be deleted in seven days. Sign in to cancel the deletion.",
}
# The form of a path on this server. After the sign-in, the browser is redirected only to such a
# path, never to another site.
OWN_PATH = re.compile(
    r"/(?:[a-z0-9][a-z0-9._-]*(?:/[a-z0-9._-]+)*)?(?:\?[A-Za-z0-9._~%+&=-]*)?", re.ASCII
)
HOME = "/today"
# The content security policy of pages with a sign-in by passkey, which needs a script.
_POLICY = "Content-Security-Policy"
_WITH_SCRIPT = {_POLICY: f"{pages.HEADERS[_POLICY]}; script-src 'self'; connect-src 'self'"}


@get("/sign-in")
async def sign_in_page(
    request: ApiRequest,
    database: Database,
    settings: Settings,
) -> AnyResponse:
    token = session_token(request.scope)
    seller_id = await _seller_of(request, database, settings, token) if token else None
    if seller_id is not None:
        return go(await _after(database, seller_id, _wanted(request.query_params)))
    async with database.shared() as session:
        if await first_run.is_open(session):
            return page("no_shop.html")
    done = DONE.get(request.query_params.get("signed_out", ""), "")
    return _sign_in(request, settings, done=done, then=_wanted(request.query_params))


def _wanted(given: Mapping[str, str]) -> str:
    """Return the path to open after the sign-in: the parameter `next` or, in links to plans,
    `then`.
    """
    return given.get("next") or given.get("then") or ""


def _own(path: str) -> str:
    own = len(path) <= limits.NEXT_CHARACTERS and path != "/sign-in" and OWN_PATH.fullmatch(path)
    return path if own else ""


def _sign_in(
    request: ApiRequest,
    settings: Settings,
    status: int = 200,
    headers: dict[str, str] | None = None,
    *,
    email: str = "",
    problem: str = "",
    done: str = "",
    then: str = "",
) -> Template:
    values: dict[str, object] = {
        "email": email,
        "problem": problem,
        "done": done,
        "then": _own(then),
    }
    values["demo"] = sign_in_of(settings.public_demo)
    values["passkeys"] = has_name(settings, request.headers.get("host"))
    return page("sign_in.html", status, {**_WITH_SCRIPT, **(headers or {})}, **values)


async def _after(database: Database, seller_id: int, wanted: str) -> str:
    """Return the path of the page after a sign-in. For an account that will be deleted, this is the
    page with the button that cancels the deletion.
    """
    async with database.tenant(seller_id) as session:
        leaving = await deletion.pending(session, seller_id)
    return "/settings/data" if leaving else _own(wanted) or HOME


async def _seller_of(
    request: ApiRequest,
    database: Database,
    settings: Settings,
    token: str,
) -> int | None:
    """Return the seller's id of a valid session, else None."""
    try:
        ring = request.app.state.session_ring
        caller = await sessions.caller_with(database, ring, token, settings)
    except errors.Unauthorized:
        return None
    return None if caller.account.suspended else caller.seller_id


@public_form("/sign-in", middleware=[among_strangers])
async def sign_in(
    request: ApiRequest, form: Form, database: Database, settings: Settings
) -> AnyResponse:
    email = form["email"]
    try:
        who = await signed_in(request, database, settings, email, form.password())
    except (errors.InvalidCredentials, errors.AccountSuspended, errors.RateLimited) as e:
        return _sign_in(
            request,
            settings,
            e.status,
            e.headers,
            email=email,
            problem=sentence(e),
            then=_wanted(form.some("next", "then")),
        )
    where = await _after(database, who.seller_id, _wanted(form.some("next", "then")))
    return go(where, cookie_of(settings, who.token))


@get("/invitations/{token:str}", middleware=[among_strangers])
async def invitation_page(token: str, database: Database) -> Template:
    return await _invitation(database, token)


@public_form("/invitations/{token:str}", middleware=[among_strangers])
async def accept_invitation(
    form: Form,
    token: str,
    database: Database,
    settings: Settings,
) -> AnyResponse:
    name = form["name"]
    try:
        who = await invitations.accept(database, settings, token, name, form.password())
    except errors.InvalidPayload as e:
        return await _invitation(database, token, e.status, name=name, problem=sentence(e))
    return go(HOME, cookie_of(settings, who.token))


async def _invitation(
    database: Database,
    token: str,
    status: int = 200,
    *,
    name: str = "",
    problem: str = "",
) -> Template:
    async with database.shared() as session:
        member, seller = await invitations.invited(session, token)
    return page(
        "invitation.html",
        status,
        seller=seller,
        role=member.role,
        email=member.email,
        joined=member.password_hash is not None,
        name=name,
        problem=problem,
        least=limits.PASSWORD_CHARACTERS,
        most=limits.PASSWORD_CHARACTERS_MOST,
    )


@public_form("/sign-out", middleware=[among_strangers])
async def sign_out(
    request: ApiRequest, form: Form, database: Database, settings: Settings
) -> Response[str]:
    """Sign the member out. The form has the CSRF token in a field.

    A member who is already signed out gets the same answer.
    """
    token = session_token(request.scope)
    where = "everywhere" if form["everywhere"] == "true" else "here"
    gone = go(f"/sign-in?signed_out={where}", cookie_of(settings, ""))
    if token is None:
        return gone
    need_form_token(request.scope, form["csrf_token"])
    try:
        ring = request.app.state.session_ring
        caller = await sessions.caller_with(database, ring, token, settings)
    except errors.Unauthorized:
        return gone
    async with database.tenant(caller.seller_id) as session:
        await signed_out(session, caller, request, everywhere=where == "everywhere")
    return gone


router = Router(
    path="/",
    route_handlers=[
        sign_in_page, sign_in, invitation_page, accept_invitation, sign_out,
    ],
    exception_handlers={errors.Problem: refused},
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)  # fmt: skip
