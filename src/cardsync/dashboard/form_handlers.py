"""Forms of pages: a handler gets a form once its token is checked, and a transaction or a writer of
prices that is bounded; both end before the answer is sent.

The page after a form offers to undo its change, where the entry of the activity feed can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litestar import Request, Response, post
from litestar.connection import ASGIConnection
from litestar.datastructures import UploadFile
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.status_codes import HTTP_303_SEE_OTHER
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import tokens
from cardsync.access.activity import ENTRIES, Activity
from cardsync.access.admission import BY_FORM, need_form_token, session_token
from cardsync.access.caller import Caller, header
from cardsync.platform import clock, errors
from cardsync.platform.settings import Settings
from cardsync.prices.plans.writer import Writer
from cardsync.shop.activity.undo import is_undoable
from cardsync.web.forms import TOKEN, AnyRequest, Form, sent_form
from cardsync.web.request import provide_bounded_session

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

# The field by which a form says that its sender has seen the figures of a large change.
CONFIRM: Final = "confirm"
# The other fields of a form, and its boundaries, are around its file.
AROUND_BYTES: Final = 100_000
_URLENCODED: Final = "application/x-www-form-urlencoded"


@dataclass
class _Sending:
    """The entries that a form's request adds to the activity feed, and the session that sent it."""

    session_token: str
    is_owner: bool
    entries: list[Activity]


_SENDING: ContextVar[_Sending | None] = ContextVar("sending", default=None)


async def _read(
    connection: ASGIConnection[Any, Any, Any, Any],
    _: BaseRouteHandler,
) -> None:
    """Keep a form whose token is right. Raises CsrfFailed, BadRequest, InvalidPayload."""
    assert isinstance(connection, Request)
    form = await sent_form(connection)
    given = connection.headers.get("x-csrf-token") or (form.all(TOKEN) or [""])[-1]
    need_form_token(connection.scope, given)
    connection.scope["form"] = form  # type: ignore[typeddict-unknown-key]
    entries: list[Activity] = []
    ENTRIES.set(entries)
    caller = connection.scope.get("caller")
    is_owner = isinstance(caller, Caller) and caller.role == "owner"
    _SENDING.set(_Sending(session_token(connection.scope) or "", is_owner, entries))


def _with_undo(answer: Response[Any]) -> Response[Any]:
    """Add to the address of the next page which entry it can undo: the form's last one."""
    sending = _SENDING.get()
    if sending is None or not sending.is_owner or answer.status_code != HTTP_303_SEE_OTHER:
        return answer
    undoable = [entry.id for entry in sending.entries if is_undoable(entry)]
    address = answer.headers.get("Location", "")
    if undoable and "done=" in address:
        number = tokens.signed_number(sending.session_token, undoable[-1])
        answer.headers["Location"] = f"{address}&undo={number}"
    return answer


def read_form(request: AnyRequest) -> Form:
    """Return the form that was sent; an empty one with a request that sends none."""
    return request.scope.get("form") or Form({})  # type: ignore[return-value]


def keeping_typed(app: ASGIApp) -> ASGIApp:
    """Middleware that reads the form of a reader whose session has ended, so that the answer can
    show the typed values. It is outside of the middleware that admits.
    """

    async def keeping(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except errors.Unauthorized:
            kind = header(scope, b"content-type") or ""
            if scope.get("method") == "POST" and kind.startswith(_URLENCODED):
                with suppress(errors.Problem):
                    request: AnyRequest = Request(scope, receive)
                    scope["form"] = await sent_form(request)  # type: ignore[typeddict-unknown-key]
            raise

    return keeping


def typed_in(request: AnyRequest) -> list[tuple[str, str]]:
    """Return the values of a form's fields, except its token and passwords."""
    fields = read_form(request).again(without="password")
    return [(name, value) for name, value in fields if value and "password" not in name]


async def read_file(request: AnyRequest) -> UploadFile | None:
    """Return the file of a form with one, once its token is checked. Raises CsrfFailed."""
    form = await request.form()
    need_form_token(request.scope, str(form.get(TOKEN, "")))
    file = form.get("file")
    return file if isinstance(file, UploadFile) else None


def writer_of(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    form: Form,
) -> Writer:
    """Return a writer, confirmed if the form was sent again after the figures of a large change
    were shown (`shell.refused` shows them).
    """
    return Writer(session, caller, settings, clock.now(), form[CONFIRM] == "true")


def _provide_writer(
    bounded: AsyncSession,
    caller: Caller,
    settings: Settings,
    form: Form,
) -> Writer:
    return writer_of(bounded, caller, settings, form)


_HANDED_OVER: Final = {
    "form": Provide(read_form, sync_to_thread=False),
    "bounded": Provide(provide_bounded_session),
    "writer": Provide(_provide_writer, sync_to_thread=False),
}


def post_form(
    path: str | list[str],
    opt: Mapping[str, Any] = BY_FORM,
    **given: Any,
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Make a function the handler of a form of the signed-in member's pages.

    Its parameters may name `form`, and one of `session`, `bounded` (for long statements) and
    `writer`: one transaction, committed unless the function raises. A person who decides row by row
    is limited by the requests of all kinds alone, unless `opt` names a narrower group.
    """
    return post(
        path,
        opt={**BY_FORM, **opt},
        guards=[_read],
        dependencies=_HANDED_OVER,
        after_request=_with_undo,
        **given,
    )
