"""The shared parts of every route: a request class that parses JSON strictly, the dependencies for
the caller and for transactions, and the descriptions of errors for OpenAPI.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import reduce
from operator import or_
from typing import Annotated, Any, TypeVar, cast

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.datastructures.headers import Headers
from litestar.di import Provide
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter
from litestar.types import Receive, Scope, Send
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import ADMITTED, Caller
from cardsync.platform import errors, limits, read_json
from cardsync.platform.database.session import Database
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.value_types import Json
from cardsync.web import bodies
from cardsync.web.heavy_work import HEAVY, HeavyWork

T = TypeVar("T")
WithSlashes = Annotated[
    str, Parameter(pattern=".+", description="May hold slashes, as they are or as %2F")
]
JSON_HEADERS = [(b"content-type", b"application/json")]
_JSON_TYPES = (
    "application/json",
    "application/gzip",
    "application/x-gzip",
    "application/octet-stream",
    "",
)


class ErrorBody(msgspec.Struct):
    """An error, as a sentence and a code."""

    error: str
    code: str


class InternalError(msgspec.Struct):
    """An error that the route does not declare: a 404, 422 or 5xx."""

    error: str
    code: str
    """not_found, unprocessable_content or internal_server_error"""
    status: int
    """The HTTP status of the response"""
    request_id: str


class Deleted(msgspec.Struct):
    """The answer to a deletion."""

    deleted: bool


def media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def storable(value: object) -> Json:
    """Return the value of a path or header with U+FFFD in place of every NUL, which PostgreSQL
    cannot store as text or as JSON. A search for such a text finds nothing.
    """
    match value:
        case str():
            return value.replace("\0", "\ufffd")
        case list():
            return [storable(item) for item in value]
        case dict():
            return {storable(name): storable(item) for name, item in value.items()}
    return value


def need_storable(value: object, field: str = "") -> None:
    """Refuse a NUL in a body's texts; the error names its field. Raises InvalidPayload."""
    match value:
        case str() if "\0" in value:
            raise errors.InvalidPayload(f"{field or 'body'}: contains a NUL character")
        case list():
            for place, item in enumerate(value):
                need_storable(item, f"{field}[{place}]")
        case dict():
            for name, item in value.items():
                if "\0" in name:
                    raise errors.InvalidPayload(
                        f"{field or 'body'}: a name contains a NUL character"
                    )
                need_storable(item, f"{field}.{name}" if field else name)


def takes_json(headers: Headers) -> None:
    """Refuse a Content-Type that cannot be JSON or gzipped JSON. Raises UnsupportedMediaType."""
    kind = media_type(headers)
    if kind not in _JSON_TYPES and not kind.endswith("+json"):
        raise errors.UnsupportedMediaType(f"this endpoint takes application/json, not {kind}")


AnyRequest = Request[object, object, State]
AnyResponse = Response[Any]


class ApiRequest(AnyRequest):
    """A request whose body may be gzipped. The first two bytes of the body decide, not a header."""

    async def json(self) -> Json:
        """Return the body as the type of the route's parameter `data`. Litestar itself would accept
        "1" for 1 and 1 for true, which is right only in a query. Raises BadRequest, InvalidPayload.
        """
        takes_json(self.headers)
        body = await self.body()
        if bodies.is_gzip(body):
            try:
                body = await asyncio.to_thread(bodies.inflate, body, limits.BODY_INFLATED_BYTES)
            except bodies.BadGzip as e:
                raise errors.BadRequest(f"the body is not complete gzip: {e}") from e
        try:
            value = bodies.decoded(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as e:
            raise errors.BadRequest(read_json.not_json(e, body)) from e
        if b"\\u0000" in body:
            need_storable(value)
        shapes = self.scope["route_handler"].signature_model.__annotations__
        return read_json.read(value, shapes.get("data", Any))


class Polled(Response[T]):
    """An answer that sends a struct as JSON with status 200. It skips Litestar's usual steps for a
    response, which cost more than the encoding.
    """

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        body = msgspec.json.encode(self.content)
        headers = [*JSON_HEADERS, (b"content-length", str(len(body)).encode())]

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": False})

        return answer


def provide_caller(request: AnyRequest) -> Caller:
    """Return the caller whom the middleware admitted."""
    return ADMITTED.of(request.scope)


async def provide_session(state: State, caller: Caller) -> AsyncIterator[AsyncSession]:
    """Yield a transaction in the caller's tenant scope, which is committed before the response is
    sent.
    """
    database: Database = state.database
    async with database.tenant(caller.seller_id) as session:
        yield session


async def provide_bounded_session(state: State, caller: Caller) -> AsyncIterator[AsyncSession]:
    """Yield a transaction in the caller's tenant scope with limited statements, for a request that
    selects cards by a search or waits for another request that does.
    """
    database = provide_database(state)
    settings = provide_settings(state)
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        session.info[HEAVY] = provide_heavy(state)
        yield session


async def provide_snapshot(state: State, caller: Caller) -> AsyncIterator[AsyncSession]:
    """Yield a transaction that only reads. All its reads see the same moment."""
    async with provide_database(state).tenant(caller.seller_id, snapshot=True) as session:
        yield session


async def provide_bounded_snapshot(state: State, caller: Caller) -> AsyncIterator[AsyncSession]:
    """Yield a transaction that only reads, for long statements."""
    seconds = provide_settings(state).read_seconds
    database = provide_database(state)
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        yield session


PAGES = {
    "bounded": Provide(provide_bounded_session),
    "snapshot": Provide(provide_snapshot),
    "bounded_snapshot": Provide(provide_bounded_snapshot),
}
"""The transactions that a page's function may request by name, besides `session`."""


def provide_settings(state: State) -> Settings:
    return cast(Settings, state.settings)


def provide_store(state: State) -> Store:
    return cast(Store, state.store)


def provide_heavy(state: State) -> HeavyWork:
    return cast(HeavyWork, state.heavy)


def provide_database(state: State) -> Database:
    return cast(Database, state.database)


def reading(request: AnyRequest) -> AbstractAsyncContextManager[Reading]:
    """Yield a reading of the caller. Handlers call this function, because a dependency would take a
    tenth of the time of the page of orders.
    """
    database = provide_database(request.app.state)
    settings = provide_settings(request.app.state)
    return database.readings.of(provide_caller(request).seller_id, settings.read_seconds)


def opened(
    request: Request[object, object, State], *, long: bool = False, snapshot: bool = False
) -> AbstractAsyncContextManager[AsyncSession]:
    """Open a transaction of the caller while a page is made; `long` is for long statements."""
    state, seller_id = request.app.state, provide_caller(request).seller_id
    database = provide_database(state)
    if long:
        seconds = provide_settings(state).read_seconds
        return database.bounded(seller_id, seconds, snapshot=snapshot)
    return database.tenant(seller_id, snapshot=snapshot)


def problems(*kinds: type[errors.Problem]) -> dict[int, ResponseSpec]:
    """Build the error answers of a route for OpenAPI: one entry per status, which lists the
    codes of the errors or, for errors with their own body, their `status`.
    """
    by_status: dict[int, list[type[errors.Problem]]] = {}
    for kind in kinds:
        by_status.setdefault(kind.status, []).append(kind)
    return {
        status: ResponseSpec(
            data_container=reduce(or_, map(_shape, group)),
            description="; ".join(
                f"{_names_it(kind)}`{kind.code}`: {' '.join((kind.__doc__ or '').split())}"
                for kind in group
            ),
            generate_examples=False,
        )
        for status, group in by_status.items()
    }


def _shape(kind: type[errors.Problem]) -> type[msgspec.Struct]:
    own_shapes = (errors.WithStatus, errors.WithFigures)
    return kind.shape if issubclass(kind, own_shapes) else ErrorBody


def _names_it(kind: type[errors.Problem]) -> str:
    if issubclass(kind, errors.WithFigures):
        return "with digits "
    return "status " if issubclass(kind, errors.WithStatus) else ""


WITH_JSON_BODY = (
    errors.BadRequest,
    errors.PayloadTooLarge,
    errors.DecompressedTooLarge,
    errors.UnsupportedMediaType,
    errors.InvalidPayload,
)
"""The errors of every route that reads a JSON body."""

BEHIND_A_KEY = (
    errors.Unauthorized,
    errors.AccountSuspended,
    errors.RateLimited,
    errors.ServiceUnavailable,
)
"""The errors of every route that needs an API key."""

FOR_AGENTS = (*BEHIND_A_KEY, errors.KeyRequired)
"""The errors of every route that accepts only API keys."""

FOR_EITHER = (*BEHIND_A_KEY, errors.CsrfFailed)
"""The errors of every write with a key or by a signed-in member."""

READ_BY_OWNERS = (*BEHIND_A_KEY, errors.OwnerRequired)
"""The errors of every read with a key or by a signed-in owner."""

FOR_OWNERS = (*FOR_EITHER, errors.OwnerRequired)
"""The errors of every write with a key or by a signed-in owner."""

FOR_MEMBERS = (*FOR_EITHER, errors.SessionRequired)
"""The errors of every write that only a signed-in member may do. A read has the same errors except
`csrf_failed`.
"""
