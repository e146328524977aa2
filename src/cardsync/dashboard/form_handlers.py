"""Makes functions the handlers of the pages' forms. A handler gets a form with a valid token and,
if it requests one, a transaction or a writer of prices; the transaction ends before the answer is
sent.

The page after a form offers to undo its change if the change's entry in the activity feed can be
undone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from litestar import Request, Response
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.response import Template
from litestar.status_codes import HTTP_204_NO_CONTENT, HTTP_303_SEE_OTHER
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import tokens
from cardsync.access.activity import ENTRIES, Activity
from cardsync.access.admission import need_form_token, session_token
from cardsync.access.caller import Caller, header
from cardsync.platform import clock, errors
from cardsync.prices.plans.writer import Writer
from cardsync.shop.activity.undo import is_undoable
from cardsync.web.forms import (
    FORM,
    TOKEN,
    keep_form,
    public_form,
    read_form,
    sent_form,
)
from cardsync.web.request import AnyRequest, AnyResponse, opened, provide_caller, provide_settings

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

# The field of a form whose sender has seen the figures of a large change and confirms it.
CONFIRM: Final = "confirm"
# The bytes of an upload's form around its file: its other fields and boundaries.
AROUND_BYTES: Final = 100_000
# With this header, a script names the marks of the rows that its page has already (js/in-place.js).
ROWS_THERE: Final = "X-Rows-There"
# The ids of the rows that a form's request has finished. A script removes them at once, and then
# loads the page that follows from the address in `FOLLOWS`.
ROWS_DONE: Final = "X-Rows-Done"
FOLLOWS: Final = "X-Follows"
_URLENCODED: Final = "application/x-www-form-urlencoded"


@dataclass
class _Sending:
    """The entries that a form's request adds to the activity feed, and the session that sent it."""

    session_token: str
    is_owner: bool
    by_script: bool
    entries: list[Activity]


_SENDING: ContextVar[_Sending | None] = ContextVar("sending", default=None)


async def _read(request: AnyRequest) -> None:
    """Store a form whose token is valid. Raises CsrfFailed, BadRequest, InvalidPayload."""
    form = await sent_form(request)
    given = request.headers.get("x-csrf-token") or (form.all(TOKEN) or [""])[-1]
    need_form_token(request.scope, given)
    FORM.put(request.scope, form)
    entries: list[Activity] = []
    ENTRIES.set(entries)
    is_owner = provide_caller(request).role == "owner"
    by_script = ROWS_THERE in request.headers
    _SENDING.set(_Sending(session_token(request.scope) or "", is_owner, by_script, entries))


def _with_undo(answer: Response[object]) -> Response[object]:
    """Add the id of the form's last undoable entry to the next page's address, so that this page
    offers the undo.
    """
    sending = _SENDING.get()
    if sending is None or not sending.is_owner or answer.status_code != HTTP_303_SEE_OTHER:
        return answer
    undoable = [entry.id for entry in sending.entries if is_undoable(entry)]
    address = answer.headers.get("Location", "")
    if undoable and "done=" in address:
        number = tokens.signed_number(sending.session_token, undoable[-1])
        answer.headers["Location"] = f"{address}&undo={number}"
    return answer


def _finished(answer: Response[object]) -> Response[object]:
    """Offer the undo. A script that asked gets the address of the next page instead of being
    redirected, because a redirect would hide which rows are done.
    """
    answer = _with_undo(answer)
    sending = _SENDING.get()
    if sending is not None and sending.by_script and ROWS_DONE in answer.headers:
        answer.headers[FOLLOWS] = answer.headers.pop("Location")
        answer.status_code = HTTP_204_NO_CONTENT
    return answer


def keeping_typed(app: ASGIApp) -> ASGIApp:
    """Middleware that reads the form of a member whose session has ended, so that the answer can
    show the typed values. It wraps the middleware that admits callers.
    """

    async def keeping(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except errors.Unauthorized:
            kind = header(scope, b"content-type") or ""
            if scope.get("method") == "POST" and kind.startswith(_URLENCODED):
                with suppress(errors.Problem):
                    await keep_form(Request(scope, receive))
            raise

    return keeping


def typed_in(request: AnyRequest) -> list[tuple[str, str]]:
    """Return the values of a form's fields, except its token and passwords."""
    fields = read_form(request).again(without="password")
    return [(name, value) for name, value in fields if value and "password" not in name]


async def owners(request: AnyRequest, _: object) -> None:
    """Guard a form whose file only an owner may upload. Raises OwnerRequired."""
    provide_caller(request).must_be_owner()


def writer_of(request: AnyRequest, session: AsyncSession) -> Writer:
    """Return a writer of prices. It is confirmed if the member sent the form again after seeing the
    figures of a large change (`shell.refused` shows them).
    """
    settings, confirmed = provide_settings(request.app.state), read_form(request)[CONFIRM] == "true"
    return Writer(session, provide_caller(request), settings, clock.now(), confirmed)


def _provide_writer(request: AnyRequest, bounded: AsyncSession) -> Writer:
    return writer_of(request, bounded)


_WRITER: Final = {"writer": Provide(_provide_writer, sync_to_thread=False)}


def post_form(
    path: str | list[str],
    opt: Mapping[str, object] | None = None,
    **given: object,
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Return a decorator that makes a function the handler of a form on a signed-in member's pages.

    The function's parameters may name `form`, and one of `session`, `bounded` (for long statements)
    and `writer`. Each of these three is one transaction, committed unless the function raises;
    `again` shows the form again after an error. Unless `opt` names a narrower group of rate limits,
    only the general limit applies, because a person may decide row by row.
    """
    return public_form(
        path,
        _read,
        _WRITER,
        opt=opt,
        after_request=_finished,
        **given,
    )


# A function that shows a refused form again. It gets a new session, because the form's own
# transaction is over.
Show = Callable[[AnyRequest, Caller, AsyncSession, Any], Awaitable[Template]]


def again(show: Show, *refusals: type[Exception]) -> dict[type[Exception], Any]:
    """Return the `exception_handlers` of a form that `show` shows again after these refusals."""
    return dict.fromkeys(refusals, partial(_Again, show))


class _Again(Response[None]):
    """The page that shows a refused form again. It is a response, because an exception handler
    cannot await the database.
    """

    def __init__(self, show: Show, request: AnyRequest, refusal: Exception) -> None:
        super().__init__(None)
        self.show, self.request, self.refusal = show, request, refusal
        self.refuse = request.route_handler.resolve_exception_handlers()[errors.Problem]

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                page = await self._page(self.request)
            except errors.Problem as problem:
                page = self.refuse(self.request, problem)
            await page.to_asgi_response(None, self.request)(scope, receive, send)

        return answer

    async def _page(self, request: AnyRequest) -> AnyResponse:
        if FORM.find(request.scope) is None:
            raise self.refusal
        caller = provide_caller(request)
        async with opened(request, long=True) as session:
            return await self.show(request, caller, session, self.refusal)
