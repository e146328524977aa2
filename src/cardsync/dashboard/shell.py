"""Renders the frame of every page: the navigation, the token for forms, and the reader's language
and time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from litestar import MediaType, Response
from litestar.response import Template

from cardsync.access import tokens
from cardsync.access.admission import session_token
from cardsync.access.caller import Caller
from cardsync.dashboard.assets import asset_url
from cardsync.dashboard.form_handlers import CONFIRM, ROWS_DONE, ROWS_THERE, typed_in
from cardsync.dashboard.formats import Reader, game_name, language_of, zone_of
from cardsync.dashboard.frame import frame_of
from cardsync.dashboard.messages import sentences
from cardsync.platform import clock, errors
from cardsync.platform.kit.row_pages import Paging, read_paging
from cardsync.platform.money import percent
from cardsync.platform.shelf_place import Box
from cardsync.prices.proposals.decide_proposals import SeenProposal
from cardsync.web import pages
from cardsync.web.forms import field_of, read_form, sentence
from cardsync.web.request import AnyRequest, AnyResponse

PageRequest = AnyRequest
# The values that a template shows.
TemplateValues: TypeAlias = dict[str, Any]
# Scripts, styles and the targets of forms are on our own host.
HEADERS = pages.HEADERS | {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Vary": "Cookie, Accept-Language, HX-Request",
}  # fmt: skip

HEADINGS = {
    403: "Not allowed",
    404: "Not found",
    409: "Someone else changed this",
    422: "Something's wrong with this request",
    429: "Too many requests",
    503: "One moment, please",
}


def reader_of(request: PageRequest, caller: Caller) -> Reader:
    language = language_of(request.headers.get("accept-language"))
    return Reader(language, zone_of(caller.account.time_zone), clock.now())


def paging_of(request: PageRequest, per_page: int) -> Paging:
    """Return the number of the page in the address; an unreadable number means the first page."""
    return read_paging(request.query_params.get("page"), None, per_page, per_page)


def games_of(caller: Caller) -> list[tuple[str, str]]:
    """Return the options of a filter by game."""
    return [("", "All games"), *((line, game_name(line)) for line in caller.account.product_lines)]


def show(
    request: PageRequest,
    caller: Caller,
    template: str,
    status: int = 200,
    /,
    headers: Mapping[str, str] | None = None,
    problem: errors.Problem | str | None = None,
    **values: Any,
) -> Template:
    """Render a page in its frame, with the helpers `reader`, `url` and `asset` that macros use. A
    refusal sets the page's status and the shown sentence.
    """
    if isinstance(problem, errors.Problem):
        status, problem = problem.status, sentence(problem)
    token = session_token(request.scope)
    path = request.url.path
    reader = reader_of(request, caller)
    context = {
        "reader": reader,
        "asset": asset_url,
        "url": url,
        "pages_of": pages_of,
        "box_page": box_page,
        "row_mark": row_mark,
        "rows_there": frozenset(request.headers.get(ROWS_THERE, "").split(",")),
        "path": path,
        "here": _here(request),
        "frame": frame_of(request.scope, caller, reader),
        # js/app.js keeps the names of the open groups of the navigation in this cookie.
        "opened": request.cookies.get("groups", "").split("."),
        "is_owner": caller.role == "owner",
        "sees_revenue": caller.sees_revenue,
        "csrf_token": tokens.csrf_token(token) if token else "",
        "done": _done(request),
        "undo": _undo(request, token),
        "problem": problem or "",
    }
    return Template(
        template,
        context=context | values,
        status_code=status,
        media_type=MediaType.HTML,
        headers=HEADERS | dict(headers or {}),
    )


def row_mark(*shown: object) -> str:
    """Return a text that differs between rows that do not look the same. Pure."""
    return blake2b("\0".join(map(str, shown)).encode(), digest_size=6).hexdigest()


def _here(request: PageRequest) -> str:
    """Return the page's address, without the result of the form that led here."""
    query = [pair for pair in request.query_params.multi_items() if pair[0] not in ("done", "undo")]
    return request.url.path + (f"?{urlencode(query)}" if query else "")


def _undo(request: PageRequest, token: str | None) -> int | None:
    """Return the entry that this page can undo; `form_handlers` added its id to the address."""
    return tokens.read_signed_number(token or "", str(request.query_params.get("undo", "")))


def back_to(address: str, done: str) -> Response[str]:
    """Send the browser back to the page that a form names in its field `back`. Raises
    BadRequest.
    """
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or not parts.path.startswith("/") or "\\" in address:
        raise errors.BadRequest("back: must be a page of this site")
    return see(parts.path, done, **parse_qs(parts.query))


def _done(request: PageRequest) -> str:
    """Return the sentence about the form that led here; `see` added its message to the address."""
    return sentences(str(request.query_params.get("done", "")))


def see(path: str, done: str = "", **query: object) -> Response[str]:
    """Send the browser to a page after a form has done its work; `done` is a message of
    `messages.py`.
    """
    if done and not sentences(done):
        raise ValueError(f"{done!r} is no message of dashboard/messages.py")
    address = url(path, **query | ({"done": done} if done else {}))
    headers = HEADERS | {"Location": address}
    return Response("", status_code=303, media_type=MediaType.TEXT, headers=headers)


def see_decided(path: str, done: str, decided: Iterable[SeenProposal]) -> Response[str]:
    """Send the browser to a page of proposals, of which these wait no longer."""
    answer = see(path, done)
    if ids := ",".join(f"waits-{one.key}@{clock.exact(one.revision)}" for one in decided):
        answer.headers[ROWS_DONE] = ids
    return answer


def url(path: str, /, **query: object) -> str:
    """Return an address with those parameters that are not empty."""
    given = {name: value for name, value in query.items() if value not in (None, "", [])}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def pages_of(path: str, /, **query: object) -> Callable[..., str]:
    """Return a function that makes the addresses of a list's pages:
    `pages_of("/customers")(page=2)`.
    """
    return partial(url, path, **query)


# Pages with these names are at the same place as the boxes' addresses.
_BESIDE_BOXES = ("put", "box")


def box_page(box: Box) -> str:
    """Return the address of a box. Boxes' addresses ignore upper and lower case; the addresses of
    other pages, such as /shelves/put, do not.
    """
    label = str(box)
    return f"/shelves/{quote(label.title() if label in _BESIDE_BOXES else label, safe='')}"


def refused(request: PageRequest, problem: errors.Problem) -> AnyResponse:
    """Show the API's error sentence on a page. A reader who is not signed in is sent to the sign-in
    page.
    """
    if isinstance(problem, errors.Unauthorized):
        return _signed_out(request, problem)
    values = {
        "heading": HEADINGS.get(problem.status, "That did not work"),
        "message": sentence(problem),
        "field": field_of(problem),
    }
    caller = request.scope.get("caller")
    if isinstance(problem, errors.ConfirmationNeeded) and isinstance(caller, Caller):
        return _confirmation(request, caller, problem)
    if isinstance(caller, Caller):
        headers = problem.headers
        return show(request, caller, "refused.html", problem.status, headers=headers, **values)
    return pages.page("message.html", problem.status, problem.headers, **values)


def _signed_out(request: PageRequest, problem: errors.Problem) -> AnyResponse:
    """Send a reader to the sign-in page. After a form, show a page with the form's values instead,
    so that the reader can copy them. A script gets only the status, because it would insert the
    sign-in page into a part of the page.
    """
    by_script = "hx-request" in request.headers
    if request.method == "GET" and not by_script:
        return pages.to_sign_in(request, problem)
    if by_script:
        headers = HEADERS | {"HX-Reswap": "none"}
        return Response("", status_code=problem.status, media_type=MediaType.TEXT, headers=headers)
    parts = urlsplit(request.headers.get("referer") or "")
    query = f"?{parts.query}" if parts.query else ""
    values = {"back": f"{parts.path}{query}", "typed": typed_in(request)}
    return pages.page("signed_out.html", problem.status, **values)


def _confirmation(
    request: PageRequest,
    caller: Caller,
    problem: errors.ConfirmationNeeded,
) -> AnyResponse:
    """Show the size of the change, and the same form again with the field `confirm`."""
    figures = problem.body()
    return show(
        request,
        caller,
        "confirm.html",
        problem.status,
        fields=[*read_form(request).again(without=CONFIRM), (CONFIRM, "true")],
        cards=figures["cards_affected"],
        change=figures["listed_value_change"],
        deepest=percent(figures["deepest_fall_bp"]),
        back=request.headers.get("referer") or "/pricing",
    )
