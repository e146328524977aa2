"""Unifies two forms of a request. HEAD becomes GET without a body, and a parameter with several
values may be `x=1&x=2` or `x[]=1&x[]=2`. A NUL in a query is replaced.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Literal

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, ReceiveMessage, Scope, Send

from cardsync.platform.database.hot_reads import only_looking
from cardsync.platform.kit.scope_values import ScopeValue

FIRST_PART_SECONDS = 1.0
_BRACKETS = re.compile(rb"(?i)(^|&)([^=&]+?)(?:\[|%5b)(?:\]|%5d)(?=[=&]|$)")
_WITHOUT_BODY = ScopeValue[bool]("without_body")


def without_brackets(query: bytes) -> bytes:
    """Return the query with `x` in place of each name `x[]`."""
    return _BRACKETS.sub(rb"\1\2", query)


def storable(query: bytes) -> bytes:
    """Return the query with U+FFFD in place of every NUL, which PostgreSQL cannot store as text or
    as JSON. A search for such a text finds nothing.
    """
    return query.replace(b"%00", b"%EF%BF%BD")


def reads_by(scope: HTTPScope) -> Literal["GET", "HEAD"]:
    """Return the method that the client sent, GET or HEAD; the scope has GET for both."""
    return "HEAD" if _WITHOUT_BODY.find(scope) else "GET"


def unify_requests(app: ASGIApp) -> ASGIApp:
    """Middleware that must be outside all middleware that uses the method, the body or
    its length.
    """

    async def alike(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        if query := scope["query_string"]:
            scope["query_string"] = storable(without_brackets(query))
        if scope["method"] == "HEAD":
            await _without_body(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return alike


async def _without_body(app: ASGIApp, scope: HTTPScope, receive: Receive, send: Send) -> None:
    scope["method"] = "GET"
    _WITHOUT_BODY.put(scope, True)
    # An answer without a body has no ranges (RFC 9110, 14.2).
    scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"range"]
    answered = False
    comes = asyncio.Event()

    async def received() -> ReceiveMessage:
        if not answered:
            return await receive()
        # After the first part of the body, tell the handler that the client left. An event stream
        # would never end otherwise. Its first part may take a while.
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_PART_SECONDS):
                await comes.wait()
        return {"type": "http.disconnect"}

    async def answer(message: Message) -> None:
        nonlocal answered
        if message["type"] == "http.response.start":
            answered = True
            # The middleware outside this one logs and counts the method that the client sent.
            scope["method"] = "HEAD"
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        elif message["type"] == "http.response.body":
            comes.set()

    # A GET of an agent takes the sync lock, or marks a file as served. A HEAD must do neither.
    with only_looking():
        await app(scope, received, answer)
