"""Forms of pages: a handler gets a form once its token is checked, and a transaction or a writer of
prices that is bounded; both end before the answer is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from litestar import Request, post
from litestar.connection import ASGIConnection
from litestar.datastructures import UploadFile
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.access.admission import BY_FORM, need_form_token
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.plans.writer import Writer
from cardsync.settings import Settings
from cardsync.web.forms import AnyRequest, fields_of
from cardsync.web.request import provide_bounded_session

# The field by which a form says that its sender has seen the figures of a large change.
CONFIRM: Final = "confirm"
_TOKEN: Final = "csrf_token"  # noqa: S105 (the name of a field)
_FIELDS_MOST: Final = 2_000


@dataclass(frozen=True)
class Form:
    """A form's fields, each with its last value; one that was not sent is empty."""

    sent: Mapping[str, list[str]]

    def __getitem__(self, name: str) -> str:
        return self.sent[name][-1].strip() if self.sent.get(name) else ""

    def __contains__(self, name: str) -> bool:
        return name in self.sent

    def __iter__(self) -> Iterator[str]:
        return iter(self.sent)

    def all(self, name: str) -> list[str]:
        return self.sent.get(name, [])

    def some(self, *names: str) -> dict[str, str]:
        return {name: self[name] for name in names}

    def again(self, without: str) -> list[tuple[str, str]]:
        """Return the fields of the same form once more, but for its token and one field."""
        return [
            (name, value)
            for name, values in self.sent.items()
            if name not in (_TOKEN, without)
            for value in values
        ]


async def unchecked(request: AnyRequest) -> Form:
    """Return a form that has no token to check. Raises BadRequest, InvalidPayload."""
    return Form(await fields_of(request, _FIELDS_MOST))


async def _read(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    """Keep a form whose token is right. Raises CsrfFailed, BadRequest, InvalidPayload."""
    assert isinstance(connection, Request)
    form = await unchecked(connection)
    given = connection.headers.get("x-csrf-token") or (form.all(_TOKEN) or [""])[-1]
    need_form_token(connection.scope, given)
    connection.scope["form"] = form  # type: ignore[typeddict-unknown-key]


def read_form(request: AnyRequest) -> Form:
    """Return the form that was sent; an empty one with a request that sends none."""
    return request.scope.get("form") or Form({})  # type: ignore[return-value]


async def read_file(request: AnyRequest) -> UploadFile | None:
    """Return the file of a form with one, once its token is checked. Raises CsrfFailed."""
    form = await request.form()
    need_form_token(request.scope, str(form.get(_TOKEN, "")))
    file = form.get("file")
    return file if isinstance(file, UploadFile) else None


def writer_of(session: AsyncSession, caller: Caller, settings: Settings, form: Form) -> Writer:
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
    opt: Mapping[str, Any] = WRITES,
    **given: Any,
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Make a function the handler of a form of the signed-in member's pages.

    Of what it names it gets `form`, and `session`, `bounded` (for what may be long) or `writer`:
    one transaction, which is kept unless the function raises.
    """
    return post(
        path,
        opt=BY_FORM | dict(opt),
        guards=[_read],
        dependencies=_HANDED_OVER,
        **given,
    )
