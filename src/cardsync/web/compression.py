"""Compresses text answers with gzip for clients that accept it: pages, styles, scripts and JSON
over a kilobyte.

A body that is sent in pieces (an event stream, a file) is not compressed, nor is one with a strong
ETag, which identifies the exact bytes.

BREACH is the reason for care: an attacker who can put text into a compressed page and see its
length on the wire can guess a secret of that page byte by byte. Three measures prevent it: answers
to requests that another site caused are not compressed; a form's token is masked again in every
answer (`access/tokens.csrf_token`), so the same secret never appears twice; and each answer has a
name of random length in its gzip header, which hides differences of a few bytes.
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
"""Compressing a body of one packet gains nothing; answers to agents' polls are that small."""
LARGEST_AT_ONCE = 200_000
"""A larger body is compressed in a thread: 200 KB take less than a millisecond."""
LONGEST_NAME = 100
_NAMED = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"


def takes_gzip(accepted: str) -> bool:
    """Return whether Accept-Encoding accepts gzip, by name or by a wildcard."""
    named = {}
    for one in accepted.lower().split(","):
        name, _, weight = one.partition(";")
        named[name.strip()] = weight.replace(" ", "")
    asked = named.get("gzip", named.get("*"))
    return asked is not None and asked.rstrip(".0") != "q="


def packed(body: bytes) -> bytes:
    """Return the body as gzip, with a name of random length in its header."""
    packer = isal_zlib.compressobj(level=3, wbits=-15)
    name = secrets.token_hex(LONGEST_NAME // 2)[: secrets.randbelow(LONGEST_NAME + 1)].encode()
    end = struct.pack("<II", zlib.crc32(body), len(body) & 0xFFFFFFFF)
    return b"".join((_NAMED, name, b"\0", packer.compress(body), packer.flush(), end))


def compressing(app: ASGIApp) -> ASGIApp:
    """Middleware inside the one that counts and logs; it waits for the whole body before it sends
    the length.
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


# Values of Sec-Fetch-Site for requests that no other site caused.
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
