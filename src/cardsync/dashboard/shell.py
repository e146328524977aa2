"""Renders the frame of every page: the navigation, the token that forms carry, and the reader's
language and zone.

A form of a page is read here too: its token is checked before any field is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from litestar import MediaType, Request, Response
from litestar.datastructures import State
from litestar.response import Template

from cardsync import clock, errors
from cardsync.access import tokens
from cardsync.access.admission import session_token
from cardsync.access.caller import Caller
from cardsync.dashboard.assets import asset_url
from cardsync.dashboard.formats import Reader, game_name, language_of, zone_of
from cardsync.dashboard.messages import sentences
from cardsync.web import pages
from cardsync.web.forms import fields_of

PageRequest = Request[Any, Any, State]
# Scripts and styles are our own files; a chart draws on a canvas, and forms go to ourselves.
HEADERS = pages.HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Vary": "Cookie, Accept-Language, HX-Request",
}  # fmt: skip
FIELDS_MOST = 2_000


class Place(NamedTuple):
    """An entry of the navigation: `g` and then `key` goes there."""

    path: str
    name: str
    icon: str
    key: str
    owner_only: bool = False
    revenue: bool = False
    operator_only: bool = False


# A capability that brings a page adds its line here.
NAVIGATION = [
    Place("/today", "Today", "home", "t"),
    Place("/cards", "Cards", "layers", "c"),
    Place("/orders", "Orders", "package", "o"),
    Place("/pulls", "Pulls", "hand", "p"),
    Place("/pricing", "Pricing", "tag", "r"),
    Place("/recommendations", "Advice", "trending-up", "m"),
    Place("/lists", "Lists", "list", "l"),
    Place("/shelves", "Shelves", "box", "h"),
    Place("/print", "Print", "printer", "i"),
    Place("/sales", "Sales", "wallet", "v", revenue=True),
    Place("/add-cards", "Add cards", "plus", "n"),
    Place("/sync", "Sync", "refresh-cw", "s"),
    Place("/activity", "Activity", "activity", "a"),
    Place("/network", "Network", "globe", "w", owner_only=True),
    Place("/settings", "Settings", "settings", "e", owner_only=True),
    Place("/operator", "Operator", "shield", "b", operator_only=True),
]
HEADINGS = {
    403: "Not allowed",
    404: "There is nothing here",
    409: "Something has changed meanwhile",
    422: "This could not be read",
    429: "Too many requests",
    503: "One moment, please",
}


def reader_of(request: PageRequest, caller: Caller) -> Reader:
    language = language_of(request.headers.get("accept-language"))
    return Reader(language, zone_of(caller.account.time_zone), clock.now())


def games_of(caller: Caller) -> list[tuple[str, str]]:
    """Return the choices of a filter by game."""
    return [("", "All games"), *((line, game_name(line)) for line in caller.account.product_lines)]


# The field by which a form says that its sender has seen the figures of a large change.
CONFIRM = "confirm"


def show(
    request: PageRequest,
    caller: Caller,
    template: str,
    status: int = 200,
    /,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Template:
    """Render a page in its frame, with the macros' helpers `reader`, `url` and `asset`."""
    token = session_token(request.scope)
    is_owner = caller.role == "owner"
    path = request.url.path
    context = {
        "reader": reader_of(request, caller),
        "asset": asset_url,
        "url": url,
        "path": path,
        "here": str(request.url.path) + (f"?{request.url.query}" if request.url.query else ""),
        "navigation": [place for place in NAVIGATION if _opens(place, caller)],
        "is_owner": is_owner,
        "sees_revenue": caller.sees_revenue,
        "csrf_token": tokens.csrf_token(token) if token else "",
        "done": _done(request),
        "problem": "",
    }
    return Template(
        template,
        context=context | values,
        status_code=status,
        media_type=MediaType.HTML,
        headers=HEADERS | dict(headers or {}),
    )


def _opens(place: Place, caller: Caller) -> bool:
    if place.operator_only:
        return caller.identity.operator
    if place.revenue:
        return caller.sees_revenue
    return caller.role == "owner" or not place.owner_only


def _done(request: PageRequest) -> str:
    """Return what the form that led here has done, which `see` put into the address."""
    return sentences(str(request.query_params.get("done", "")))


def see(path: str, done: str = "", **query: Any) -> Response[str]:
    """Send the browser to a page after a form has done its work; `done` is a message of ours."""
    if done and not sentences(done):
        raise ValueError(f"{done!r} is no message of dashboard/messages.py")
    address = url(path, **query | ({"done": done} if done else {}))
    headers = HEADERS | {"Location": address}
    return Response("", status_code=303, media_type=MediaType.TEXT, headers=headers)


def url(path: str, /, **query: Any) -> str:
    """Return an address with the parameters that are not empty."""
    given = {name: value for name, value in query.items() if value not in (None, "", [])}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


async def form_fields(request: PageRequest) -> dict[str, list[str]]:
    """Return a form's fields, unchecked. Raises BadRequest, InvalidPayload."""
    return await fields_of(request, FIELDS_MOST)


async def read_form(request: PageRequest) -> dict[str, list[str]]:
    """Return a form's fields once its token is checked.

    Raises CsrfFailed, BadRequest, InvalidPayload.
    """
    form = await form_fields(request)
    token = session_token(request.scope)
    given = request.headers.get("x-csrf-token") or (form.get("csrf_token") or [""])[-1]
    if token is None or not tokens.csrf_is_right(token, given):
        raise errors.CsrfFailed("this form is not of your session; go back and load the page again")
    request.scope["form"] = form  # type: ignore[typeddict-unknown-key]
    return form


def field(form: Mapping[str, list[str]], name: str) -> str:
    return form[name][-1].strip() if form.get(name) else ""


def refused(request: PageRequest, problem: errors.Problem) -> Response[Any]:
    """Show the API's own sentence; a reader who is not signed in goes to the sign-in page."""
    if isinstance(problem, errors.Unauthorized):
        return pages.to_sign_in(request, problem)
    values = {
        "heading": HEADINGS.get(problem.status, "This did not work"),
        "message": sentence(problem),
    }
    caller = request.scope.get("caller")
    if isinstance(problem, errors.ConfirmationNeeded) and isinstance(caller, Caller):
        return _confirmation(request, caller, problem)
    if isinstance(caller, Caller):
        headers = problem.headers
        return show(request, caller, "refused.html", problem.status, headers=headers, **values)
    return pages.page("message.html", problem.status, problem.headers, **values)


def _confirmation(
    request: PageRequest,
    caller: Caller,
    problem: errors.ConfirmationNeeded,
) -> Response[Any]:
    """Show how large the change is, with the same form once more and `confirm` in it."""
    form: dict[str, list[str]] = request.scope.get("form", {})  # type: ignore[assignment]
    figures = problem.body()
    fields = [
        (name, value)
        for name, values in form.items()
        if name not in ("csrf_token", CONFIRM)
        for value in values
    ]
    return show(
        request,
        caller,
        "confirm.html",
        problem.status,
        fields=[*fields, (CONFIRM, "true")],
        cards=figures["cards_affected"],
        change=figures["listed_value_change"],
        deepest=f"{figures['deepest_fall_bp'] / 100:.0f}",
        back=request.headers.get("referer") or "/pricing",
    )


def sentence(problem: errors.Problem) -> str:
    """Return the refusal as a sentence for people."""
    text = str(problem)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
