"""Calls a binding by a request to this process's own application, with the caller's own credential.

The request does not leave the process, but no step is skipped: the route's admission, limits,
checks, activity feed and log are the same as for a request from outside
(docs/adr/0030-an-assistant-calls-the-interface.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

from cardsync.access.admission import WITHIN, Within, need_scope
from cardsync.access.caller import ADMITTED, Caller
from cardsync.assistant.bindings import FALLBACK, Binding, shapes
from cardsync.platform import errors
from cardsync.platform.value_types import Json, JsonMapping

if TYPE_CHECKING:
    from litestar.types import Message, ReceiveMessage, Scope

# No answer with one page of rows is larger. Assistants get files in other ways.
LARGEST: Final = 10_000_000
_PASSED_ON: Final = (b"authorization", b"host", b"x-forwarded-for", b"x-forwarded-proto")
# No ID or figure of the API is longer, and Python refuses to format very long numbers.
_INTEGER_BITS: Final = 128
_Text = str | int | float | bool


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_refusal(self) -> bool:
        """Return whether the answer has no body for a program. A redirect leads to a page for
        people.
        """
        return self.status >= 300

    @property
    def wait(self) -> int | None:
        """Return the seconds after which a call that exceeded a rate limit may be repeated; None
        for any other answer.
        """
        given = self.headers.get("retry-after", "") if self.status == 429 else ""
        return int(given) if given.isdigit() else None

    @property
    def is_json(self) -> bool:
        return self.headers.get("content-type", "").startswith("application/json")


class OwnRequest(NamedTuple):
    """A request that is built from a binding and its arguments."""

    method: str
    target: str
    body: bytes = b""


def asked(binding: Binding, arguments: JsonMapping) -> OwnRequest:
    """Build the request of a call. Raises InvalidPayload for an unknown or missing argument."""
    known = {one.name: one for one in shapes()[binding.name].arguments}
    for name in arguments:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise errors.InvalidPayload(f"{name}: is no argument of {binding.name}; {takes}")
    for one in known.values():
        if one.required and arguments.get(one.name) is None:
            raise errors.InvalidPayload(f"{one.name}: is missing")
    if binding is FALLBACK:
        return OwnRequest("GET", own_path(arguments["path"]))
    path, query, body = binding.path, list[tuple[str, str]](), None
    for name, value in arguments.items():
        one = known[name]
        if value is None and one.place != "body":
            continue
        if one.place == "path":
            path = path.replace(f"{{{one.wire}}}", quote(_text(name, value), safe=""))
        elif one.place == "query":
            query += [(one.wire, text) for text in _texts(name, value)]
        elif one.place == "payload":
            body = value
        else:
            body = {**(body or {}), one.wire: value}
    target = f"{path}?{urlencode(query)}" if query else path
    if binding.method == "GET":
        return OwnRequest("GET", target)
    takes_body = any(one.place in ("body", "payload") for one in known.values())
    return OwnRequest(
        binding.method, target, _json({} if body is None else body) if takes_body else b""
    )


def own_path(given: object) -> str:
    """Return the path and query of an address of the service's own API. Raises InvalidPayload for
    any other address.
    """
    if not isinstance(given, str):
        raise errors.InvalidPayload("path: must be a string")
    try:
        parts = urlsplit(given)
    except ValueError:
        raise errors.InvalidPayload("path: is no address") from None
    path = unquote(parts.path)
    steps = path.split("/")
    plain = given.isascii() and given.isprintable() and "\\" not in path and "%" not in path
    if (
        parts.scheme or parts.netloc or parts.fragment or not plain or " " in given
        or not path.startswith("/api/") or any(step in ("", ".", "..") for step in steps[1:])
    ):  # fmt: skip
        raise errors.InvalidPayload(
            "path: must be a plain path under /api/ with its query, without scheme, host or .."
        )
    return f"{quote(path)}?{parts.query}" if parts.query else quote(path)


def _json(body: Json) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise errors.InvalidPayload("an argument cannot be sent as JSON") from None


def _text(name: str, value: object) -> str:
    if not isinstance(value, _Text):
        raise errors.InvalidPayload(f"{name}: must be one value")
    text = _written(name, value)
    if not text or "/" in text or text in (".", ".."):
        raise errors.InvalidPayload(f"{name}: {text!r} names nothing")
    return text


def _texts(name: str, value: Json) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, _Text) for one in values):
        raise errors.InvalidPayload(f"{name}: must be one value, or a list of them")
    return [_written(name, one) for one in values]


def _written(name: str, value: _Text) -> str:
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        raise errors.InvalidPayload(f"{name}: is too large a number")
    return str(value).lower() if isinstance(value, bool) else str(value)


async def call(
    scope: Scope, binding: Binding, arguments: Mapping[str, object], caller: Caller | None
) -> Answer:
    """Call the binding's route and return its answer. `scope` is that of the assistant's request.
    `caller` was admitted with that request, or is None if the credential must be checked again.

    Raises InsufficientScope before the arguments are checked, and InvalidPayload if no request can
    be built from the arguments.
    """
    need_scope(scope, ADMITTED.of(scope), binding.scope)
    return await _send(scope, asked(binding, arguments), caller)


def _inner(scope: Scope, request: OwnRequest, caller: Caller | None) -> dict[str, object]:
    """Return the ASGI scope of the request to the service's own application."""
    path, _, query = request.target.partition("?")
    headers = [pair for pair in scope["headers"] if pair[0] in _PASSED_ON]
    headers += [
        (b"accept", b"application/json"),
        (b"x-request-id", str(scope.get("request_id", "")).encode()),
    ]
    if request.body:
        headers.append((b"content-type", b"application/json"))
        headers.append((b"content-length", str(len(request.body)).encode()))
    return {
        "type": "http",
        "asgi": scope.get("asgi"),
        "http_version": "1.1",
        "scheme": scope.get("scheme", "http"),
        "method": request.method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": headers,
        "client": scope.get("client"),
        "server": scope.get("server"),
        "extensions": None,
        "state": {},
        WITHIN.name: Within(caller),
    }


async def _send(scope: Scope, request: OwnRequest, caller: Caller | None) -> Answer:
    app, inner = scope["litestar_app"], _inner(scope, request, caller)
    sent = False
    ended = asyncio.Event()
    started: dict[str, Any] = {"status": 500, "headers": []}
    pieces: list[bytes] = []
    size = 0

    async def receive() -> ReceiveMessage:
        nonlocal sent
        if sent:
            # The route that sends a file waits until its client disconnects, so report a disconnect
            # after the last byte.
            await ended.wait()
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal size
        if message["type"] == "http.response.start":
            started.update(message)
            return
        if message["type"] == "http.response.body":
            size += len(piece := message.get("body", b""))
            if size > LARGEST or _streams(started["headers"]):
                raise _TooMuch
            pieces.append(piece)
            if not message.get("more_body", False):
                ended.set()

    try:
        await app(cast(Any, inner), receive, send)
    except _TooMuch:
        raise errors.InvalidPayload(
            "this answer is too large, or a stream; ask for a page of it"
        ) from None
    told = {name.decode().lower(): value.decode("latin-1") for name, value in started["headers"]}
    return Answer(int(started["status"]), told, b"".join(pieces))


def _streams(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"content-type" and b"event-stream" in value for name, value in headers)


class _TooMuch(Exception):
    """Ends an answer that is too large to read."""
