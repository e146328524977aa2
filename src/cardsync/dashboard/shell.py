"""Renders the frame of every page: the navigation, the token that forms carry, and the reader's
language and zone.
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
from cardsync.dashboard.form_handlers import CONFIRM, read_form
from cardsync.dashboard.formats import Reader, game_name, language_of, zone_of
from cardsync.dashboard.messages import sentences
from cardsync.web import pages

PageRequest = Request[Any, Any, State]
# Scripts and styles are our own files; a chart draws on a canvas, and forms go to ourselves.
HEADERS = pages.HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Vary": "Cookie, Accept-Language, HX-Request",
}  # fmt: skip


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
    figures = problem.body()
    return show(
        request,
        caller,
        "confirm.html",
        problem.status,
        fields=[*read_form(request).again(without=CONFIRM), (CONFIRM, "true")],
        cards=figures["cards_affected"],
        change=figures["listed_value_change"],
        deepest=f"{figures['deepest_fall_bp'] / 100:.0f}",
        back=request.headers.get("referer") or "/pricing",
    )


def sentence(problem: errors.Problem) -> str:
    """Return the refusal as a sentence for people."""
    text = str(problem)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
