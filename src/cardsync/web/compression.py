"""Compresses answers of text with gzip for clients that accept it: pages, styles, scripts and JSON
over a kilobyte.

Two kinds of answers are not compressed: bodies that are sent in parts (an event stream, a file),
and answers with a strong ETag, which identifies the exact bytes.

Compression must not allow the BREACH attack: an attacker who can put text into a compressed page
and see its length can guess a secret in the page byte by byte. Three measures prevent this. Answers
to requests that another site caused are not compressed. A form's token is masked anew in every
answer (`access/tokens.csrf_token`), so that the same secret never appears twice. The gzip header of
each answer contains a name of random length, which hides differences of a few bytes.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
import zlib
from collections.abc import Iterable

from isal import isal_zlib
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from litestar.types.asgi_types import HTTPResponseBodyEvent, HTTPResponseStartEvent

Headers = Iterable[tuple[bytes, bytes]]

TYPES = {
    b"text/html",
    b"text/css",
    b"text/javascript",
    b"application/javascript",
    b"application/json",
    b"image/svg+xml",
}
LARGEST_PLAIN = 1_000
"""A smaller body fits in one packet, so compressing it gains nothing. Answers to agents' polls are
that small.
"""
LARGEST_AT_ONCE = 200_000
"""A larger body is compressed in a thread. Compressing 200 KB takes less than a millisecond."""
LONGEST_NAME = 100
_NAMED = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"


def takes_gzip(accepted: str) -> bool:
    """Return whether Accept-Encoding allows gzip, by name or by a wildcard."""
    named = {}
    for one in accepted.lower().split(","):
        name, _, weight = one.partition(";")
        named[name.strip()] = weight.replace(" ", "")
    asked = named.get("gzip", named.get("*"))
    return asked is not None and asked.rstrip(".0") != "q="


def packed(body: bytes) -> bytes:
    """Compress the body with gzip, with a name of random length in the gzip header."""
    packer = isal_zlib.compressobj(level=3, wbits=-15)
    name = secrets.token_hex(LONGEST_NAME // 2)[: secrets.randbelow(LONGEST_NAME + 1)].encode()
    end = struct.pack("<II", zlib.crc32(body), len(body) & 0xFFFFFFFF)
    return b"".join((_NAMED, name, b"\0", packer.compress(body), packer.flush(), end))


def compressing(app: ASGIApp) -> ASGIApp:
    """Middleware that compresses answers. It must be inside the middleware that logs requests. It
    sends the headers only when the body is complete, because they contain its length.
    """

    async def compressed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        start: HTTPResponseStartEvent | None = None

        async def answer(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                if not _is_small(message["headers"]) and _is_text(message["headers"]):
                    start = message
                    return
            elif start is not None and message["type"] == "http.response.body":
                first, start = start, None
                if not message.get("more_body", False) and len(message["body"]) > LARGEST_PLAIN:
                    first["headers"] = _varying(first["headers"])
                    if _takes(scope):
                        await _pack(first, message)
                await send(first)
            await send(message)

        await app(scope, receive, answer)

    return compressed


_ACCEPT = b"accept-encoding"


# The values of Sec-Fetch-Site in requests that no other site caused.
_OWN_SITES = (b"same-origin", b"none")


def _takes(scope: HTTPScope) -> bool:
    accepted = b",".join(value for name, value in scope["headers"] if name == _ACCEPT)
    sites = [value for name, value in scope["headers"] if name == b"sec-fetch-site"]
    own = all(site in _OWN_SITES for site in sites)
    return own and takes_gzip(accepted.decode("latin-1"))


def _is_small(headers: Headers) -> bool:
    lengths = (int(value) for name, value in headers if name == b"content-length")
    return next(lengths, LARGEST_PLAIN + 1) <= LARGEST_PLAIN


def _is_text(headers: Headers) -> bool:
    named = {name.lower(): value for name, value in headers}
    kind = named.get(b"content-type", b"").partition(b";")[0].strip().lower()
    known = kind in TYPES or kind.endswith(b"+json")
    weak = named.get(b"etag", b"W/").startswith(b"W/")
    return known and weak and b"content-encoding" not in named


def _varying(headers: Headers) -> list[tuple[bytes, bytes]]:
    varies = [value for name, value in headers if name.lower() == b"vary"]
    if any(_ACCEPT in value.lower() for value in varies):
        return list(headers)
    rest = [(name, value) for name, value in headers if name.lower() != b"vary"]
    return [*rest, (b"vary", b", ".join([*varies, b"Accept-Encoding"]))]


async def _pack(start: HTTPResponseStartEvent, message: HTTPResponseBodyEvent) -> None:
    body = message["body"]
    small = len(body) <= LARGEST_AT_ONCE
    message["body"] = packed(body) if small else await asyncio.to_thread(packed, body)
    length = str(len(message["body"])).encode()
    kept = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
    start["headers"] = [*kept, (b"content-encoding", b"gzip"), (b"content-length", length)]
