"""Delays an error answer while the body is still arriving: the rest of the body is read first, up
to a limit. This concerns bodies that are too large or cannot be stored.

A simple client sends its whole body before it reads the answer. Without the delay it would see a
connection reset instead of the answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, ReceiveMessage, Scope, Send

# Too large a body, or an unavailable store or database: a client must see these answers in order to
# react.
ANSWERED_AT_THE_END = {413, 503}
# Reading and discarding this much costs little. A client that sends more, or more slowly, is
# disconnected.
REST_BYTES = 100_000_000
REST_SECONDS = 10.0


def reading_rests(app: ASGIApp) -> ASGIApp:
    async def read_rest(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        begun = ended = False

        async def received() -> ReceiveMessage:
            nonlocal begun, ended
            message = await receive()
            begun = True
            ended = not message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            is_answered = (
                message["type"] == "http.response.start"
                and message["status"] in ANSWERED_AT_THE_END
            )
            if is_answered and not ended and (begun or not _waits_to_be_asked(scope)):
                with suppress(TimeoutError):
                    async with asyncio.timeout(REST_SECONDS):
                        await _throw_away(receive)
            await send(message)

        await app(scope, received, answer)

    return read_rest


def _waits_to_be_asked(scope: Scope) -> bool:
    """Return whether the client waits for an invitation before it sends its body (`Expect:
    100-continue`).
    """
    return any(
        name == b"expect" and b"100-continue" in value.lower() for name, value in scope["headers"]
    )


async def _throw_away(receive: Receive) -> None:
    size = 0
    more = True
    while more and size <= REST_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            break
        size += len(message.get("body", b""))
        more = bool(message.get("more_body", False))
