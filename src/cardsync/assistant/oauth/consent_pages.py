"""The page on which an owner authorizes an assistant, or refuses to (GET and POST
/oauth/authorize).

The page is a form without scripts. If the redirect address is not verified as the client's, a page
shows the error; every other error is sent to the client.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from litestar import Response, Router, get
from litestar.response import Template

from cardsync.access import sessions, tokens
from cardsync.access.admission import among_strangers, need_form_token, session_token
from cardsync.access.caller import Caller
from cardsync.assistant.oauth import redirects
from cardsync.assistant.oauth.consent import (
    ConsentRequest,
    RefusedAt,
    approve,
    may_consent,
    opened_request,
    read_request,
    sealed_request,
)
from cardsync.assistant.oauth.refused import Unverified
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.web import pages
from cardsync.web.forms import Form, go, public_form, refused, sentence
from cardsync.web.pages import page
from cardsync.web.request import AnyRequest, AnyResponse, ApiRequest, storable

PATH = "/oauth/authorize"
_FIELDS = 30
_POLICY = "Content-Security-Policy"


@get(PATH, middleware=[among_strangers])
async def consent_page(request: ApiRequest, database: Database, settings: Settings) -> AnyResponse:
    """Show the consent page to a signed-in member. Others must sign in first, so that no stranger
    can make this service fetch a client's metadata.
    """
    token = session_token(request.scope)
    query = _query(request)
    caller = await _member(request, database, settings, token) if token else None
    if caller is None or token is None:
        back = f"{PATH}?{urlencode(query, quote_via=quote, safe='')}"
        if len(back) > limits.NEXT_CHARACTERS:
            raise Unverified("The assistant's request is too long; sign in first, and try again.")
        return go(f"/sign-in?{urlencode({'next': back})}")
    now, host = clock.now(), request.headers.get("host")
    asked = await read_request(database, settings, host, query, now)
    may_consent(caller, now)
    async with database.tenant(caller.seller_id) as session:
        who = await sessions.who(session, caller, token)
    # Browsers apply the form's policy also to the redirect of its answer.
    policy = pages.HEADERS[_POLICY].replace(
        "form-action 'self'", f"form-action 'self' {redirects.source(asked.redirect_uri)}"
    )
    return page(
        "consent.html",
        200,
        {_POLICY: policy},
        asked=asked,
        answered_at=redirects.shown(asked.redirect_uri),
        who=who,
        days=settings.refresh_token_days,
        shown_request=sealed_request(settings, caller, asked, now),
        form_token=tokens.csrf_token(token),
    )


def _query(request: ApiRequest) -> list[tuple[str, str]]:
    """Parse the query. Raises Unverified if it cannot be parsed."""
    text = request.url.query
    try:
        fields = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError:
        raise Unverified("The assistant's request cannot be read.") from None
    return [(storable(name), storable(value)) for name, value in fields]


async def _member(
    request: ApiRequest, database: Database, settings: Settings, token: str
) -> Caller | None:
    ring = request.app.state.session_ring
    try:
        caller = await sessions.caller_with(database, ring, token, settings)
    except errors.Unauthorized:
        return None
    if caller.account.suspended:
        raise errors.AccountSuspended
    return caller


@public_form(PATH, middleware=[among_strangers])
async def decide(
    request: ApiRequest, form: Form, database: Database, settings: Settings
) -> AnyResponse:
    token = session_token(request.scope)
    caller = await _member(request, database, settings, token) if token else None
    if caller is None:
        raise errors.CsrfFailed("the session has ended; sign in, and start again in the assistant")
    need_form_token(request.scope, form["csrf_token"])
    now = clock.now()
    asked: ConsentRequest = opened_request(settings, caller, form["request"], now)
    match form["word"]:
        case "refuse":
            return go(asked.answer(error="access_denied", error_description="the owner refused"))
        case "approve":
            async with database.tenant(caller.seller_id) as session:
                code = await approve(
                    session,
                    caller,
                    settings,
                    asked,
                    now,
                    writes=form["access"] == "write",
                    buyer_data=form["buyers"] == "yes",
                )
            return go(asked.answer(code=code))
    raise errors.BadRequest("the form is not whole; go back and load the page again")


def _unverified(request: AnyRequest, exc: Unverified) -> Template:
    return page("message.html", 400, heading="This cannot be connected", message=str(exc))


def _told(request: AnyRequest, exc: RefusedAt) -> Response[str]:
    return go(exc.address)


def _refused(request: AnyRequest, exc: errors.Problem) -> AnyResponse:
    if isinstance(exc, errors.OwnerRequired):
        return page("ask_owner.html", exc.status)
    if isinstance(exc, errors.PaidPlanRequired):
        heading = "Assistants need a paid plan"
        return page("message.html", exc.status, heading=heading, message=sentence(exc))
    return refused(request, exc)


router = Router(
    path="/",
    route_handlers=[consent_page, decide],
    exception_handlers={
        errors.Problem: _refused,
        Unverified: _unverified,
        RefusedAt: _told,
    },
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)
