"""Serves the Model Context Protocol at /mcp. One address serves version 2026-07-28 and the versions
of 2025, without sessions; each answer is one JSON document.

Before the protocol is parsed, a request is admitted like any other request with a key or a token.
The protocol's library is imported at the first request, so that a process without assistants does
not load it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec
from litestar import Response, Router, asgi
from litestar.enums import ScopeType
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Message, Receive, ReceiveMessage, Scope, Send
from litestar.types.asgi_types import HTTPResponseStartEvent

from cardsync.access.admission import (
    BY_BEARER,
    READS,
    admitting,
    need_scope,
    refuse_other_sites,
)
from cardsync.access.audience import PATH, WRITE, metadata_url
from cardsync.access.caller import ADMITTED, header
from cardsync.assistant import code_mode
from cardsync.assistant.tools import writing
from cardsync.platform import errors
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json
from cardsync.web import bodies, error_responses
from cardsync.web.request import AnyRequest

if TYPE_CHECKING:
    from cardsync.assistant.served import Served


# A plan has at most a megabyte, and a call adds little to it.
BODY_BYTES: Final = 2_000_000


class _Params(msgspec.Struct):
    name: Json = None


class _Message(msgspec.Struct):
    method: Json = None
    params: _Params | None = None


def own_host(app: ASGIApp) -> ASGIApp:
    """Middleware that first refuses a request for another host's name, or from another site's page.
    A page whose host name resolves to this service's address must not pass as a client.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        # A mounted application has no path template, so logs and metrics use this name.
        scope["path_template"] = PATH
        settings: Settings = scope["litestar_app"].state.settings
        host = header(scope, b"host") or ""
        if settings.origin.lower().partition("://")[2] != host.lower() and not settings.is_own_name(
            host
        ):
            raise errors.Misdirected
        refuse_other_sites(scope)
        await app(scope, receive, send)

    return checked


def _challenged(request: AnyRequest, problem: errors.Problem) -> Response[object]:
    """Answer a refused credential. The answer names the document that explains how to get a new
    one.
    """
    url = metadata_url(request.app.state.settings, request.headers.get("host"))
    challenge = problem.headers.get("WWW-Authenticate", 'Bearer realm="cardsync"')
    problem.headers["WWW-Authenticate"] = f'{challenge}, resource_metadata="{url}"'
    return error_responses.problem(request, problem)


@asgi(
    "/",
    is_mount=True,
    copy_scope=True,
    opt=BY_BEARER | READS,
)
async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one message of the protocol."""
    assert scope["type"] == ScopeType.HTTP
    if scope["path"].strip("/"):
        raise NotFoundException
    if scope["method"] != "POST":
        # The service has no stream to read with GET, and no session to end with DELETE.
        raise errors.MethodNotAllowed(
            f"{scope['method']} is not allowed here", headers={"Allow": "POST"}
        )
    body = await _body(receive)
    _need_mode(scope, body)
    assistants: Assistants = scope["litestar_app"].state.assistants
    served = await assistants.ready()
    if not await served.answer_call(scope, body, send):
        await served.answer(scope, _again(body, receive), _in_our_words(send))


router = Router(
    PATH,
    route_handlers=[mcp],
    middleware=[own_host, admitting],
    exception_handlers={
        errors.Unauthorized: _challenged,
    },
    include_in_schema=False,
)


def _need_mode(scope: Scope, body: bytes) -> None:
    """Refuse a write with a token that may only read, before its arguments are checked. Raises
    InsufficientScope, BadRequest.
    """
    caller = ADMITTED.of(scope)
    try:
        message = msgspec.convert(bodies.decoded(body), _Message)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    if WRITE in caller.identity.scopes:
        return
    name = message.params.name if message.params else None
    if message.method == "tools/call" and isinstance(name, str) and writing(name):
        need_scope(scope, caller, WRITE)


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise errors.BadRequest("the body ended before it was whole")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > BODY_BYTES:
            raise errors.PayloadTooLarge
        more = message.get("more_body", False)
    return b"".join(pieces)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` for a request whose body was already read."""
    told = False

    async def received() -> ReceiveMessage:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


# The beginning of the library's message about an invalid body, and the service's message in its
# place.
_SAYS: Final = {
    "Parse error": "Parse error: the body is not valid JSON",
    "Validation error": (
        "Validation error: the body must be one message of JSON-RPC 2.0, an object with"
        ' "jsonrpc": "2.0", the text method and the object params'
    ),
}


def _in_our_words(send: Send) -> Send:
    """Send the library's answers, but replace the messages of its JSON parser."""
    start: HTTPResponseStartEvent | None = None

    async def answer(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] == 400:
            start = message
            return
        if start is not None and message["type"] == "http.response.body":
            first, start = start, None
            message["body"] = _reworded(message["body"])
            kept = [pair for pair in first["headers"] if pair[0].lower() != b"content-length"]
            first["headers"] = [*kept, (b"content-length", str(len(message["body"])).encode())]
            await send(first)
        await send(message)

    return answer


def _reworded(body: bytes) -> bytes:
    try:
        told = msgspec.json.decode(body)
        said = _SAYS.get(told["error"]["message"].partition(":")[0])
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        return body
    if said is None:
        return body
    told["error"]["message"] = said
    return msgspec.json.encode(told)


class Assistants:
    """The protocol's server and the sandboxes of a web process, which has one object of this class.
    They run from the first request to the end of the process.
    """

    def __init__(self) -> None:
        self._opening: asyncio.Task[Served] | None = None
        self._ended = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self.sandboxes = code_mode.Sandboxes()

    async def ready(self) -> Served:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        # If the caller leaves, the server must still start, because other callers wait for it.
        return await asyncio.shield(self._opening)

    async def _open(self) -> Served:
        made: asyncio.Future[Served] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(made))
        return await made

    async def _live(self, made: asyncio.Future[Served]) -> None:
        """Run the library's tasks in their own task, because they outlive the first request."""
        try:
            served = await asyncio.to_thread(_imported)
            async with served.running():
                made.set_result(served)
                await self._ended.wait()
        except Exception as failure:
            self._opening = None
            if made.done():
                raise
            made.set_exception(failure)

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._ended.set()
            if self._life is not None:
                await self._life
            await self.sandboxes.close()


def _imported() -> Served:
    from cardsync.assistant.served import Served

    return Served()
