"""Connects to addresses that strangers name: fetches a small file, posts a body, or opens a large
file. Only the public internet can be reached.

The host is resolved once, and the connection uses the address that was checked, because a second
look-up might return another one. Proxies in the environment are not used. Only the download of a
large file follows redirects, and each target is checked like the first address.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from cardsync.platform.telemetry import spans

CHARACTERS_MOST: Final = 500
OWN_MACHINE: Final = ("127.0.0.1", "[::1]", "localhost")
_PLAIN: Final = re.compile(r"[!$-;=?-\[\]_a-z~]+", re.IGNORECASE)
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_PORT: Final = re.compile(r"(?::([0-9]{1,5}))?")
_DOTS: Final = re.compile(r"/(\.|%2e){1,2}(/|$)", re.IGNORECASE)
Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[Address]]]
# The IPv6 range of public hosts. `is_public` excludes the addresses in it that embed an IPv4
# address.
_UNICAST: Final = ip_network("2000::/3")
# Statuses that mean that the host is busy; the file may still exist.
_BUSY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_MOVES_MOST: Final = 3


class NotFetched(Exception):
    """The file was not fetched. The message is the reason, in words for a page."""


class Outward:
    """Whether this process may connect to other hosts. The settings decide this at start-up."""

    allowed = True


class HostAway(NotFetched):
    """The host did not answer or is busy. A later attempt may succeed."""


@dataclass(frozen=True)
class FetchRequest:
    """The expected file: the value of the Accept header, a test of the returned type, the message
    for a wrong type, and the limits.
    """

    accept: str
    is_kind: Callable[[str], bool]
    refused_as: str
    bytes_most: int
    seconds: float


def host_of(uri: str) -> str | None:
    """Return the host of an http or https address, if it is in a plain form."""
    try:
        place = urlsplit(uri).netloc
    except ValueError:
        return None
    host = _HOST.match(place)
    port = host and _PORT.fullmatch(place, host.end())
    return host[0] if host and port and 0 < int(port[1] or 443) < 2**16 else None


def problem(url: str, *, development: bool, mirror: str | None = None) -> str | None:
    """Return why an address may not be fetched; None if it may be. In development, addresses of
    this computer are allowed, too. An operator's mirror (host and port) may be anywhere.
    """
    if len(url) > CHARACTERS_MOST or not _PLAIN.fullmatch(url):
        return "is not a plain address"
    try:
        parts = urlsplit(url)
        host, port = host_of(url), parts.port
    except ValueError:
        return "is not an address"
    here = (development and host in OWN_MACHINE) or parts.netloc == mirror
    if parts.scheme != "https" and not (here and parts.scheme == "http"):
        return "must begin with https://"
    if host is None:
        return "must name a host in lower case, without a user"
    if port not in (None, 443) and not here:
        return "must have no port of its own"
    if parts.path in ("", "/") or _DOTS.search(parts.path):
        return "must have a path, without dots between its slashes"
    return None


def names_inside(url: str) -> bool:
    """Return whether an address has a numeric host that is not in the public internet. The host's
    name is checked later, when it is resolved.
    """
    try:
        return not is_public(ip_address((urlsplit(url).hostname or "").strip("[]")))
    except ValueError:
        return False


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _UNICAST or address.sixtofour or address.teredo:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, as this computer resolves it."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(place[0]) for *_, place in found]


async def fetch(
    url: str, asked: FetchRequest, *, development: bool = False, look_up: Resolver = resolve
) -> bytes:
    """Fetch the file and return it. Raises NotFetched."""
    headers = {"Accept": asked.accept, "Accept-Encoding": "identity"}
    async with _answer("GET", url, headers, b"", asked.seconds, development, look_up) as answer:
        return await _body(answer, asked)


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    seconds: float,
    *,
    development: bool = False,
    look_up: Resolver = resolve,
) -> int:
    """Send a body and return the status of the answer. The answer's body is not read. Raises
    NotFetched.
    """
    async with _answer("POST", url, headers, body, seconds, development, look_up) as answer:
        return int(answer.status_code)


@asynccontextmanager
async def opened(
    url: str,
    headers: Mapping[str, str],
    seconds: float,
    *,
    silence: float,
    development: bool = False,
    mirror: str | None = None,
    look_up: Resolver = resolve,
) -> AsyncIterator[Any]:
    """Open an httpx response. The caller checks its status and reads its body in parts. The
    response ends at the time limit, or earlier if no bytes arrive for `silence` seconds. Raises
    NotFetched.
    """
    for _ in range(_MOVES_MOST + 1):
        async with _answer(
            "GET", url, headers, b"", seconds, development, look_up, silence=silence, mirror=mirror
        ) as answer:
            if answer.status_code in _BUSY:
                raise HostAway(f"the server answered with status {answer.status_code}")
            if answer.status_code not in _MOVED:
                yield answer
                return
            url = urljoin(url, answer.headers.get("location", ""))
    raise NotFetched(f"it was redirected more than {_MOVES_MOST} times")


@cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context(trust_env=False)


@asynccontextmanager
async def _answer(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes,
    seconds: float,
    development: bool,
    look_up: Resolver,
    *,
    silence: float | None = None,
    mirror: str | None = None,
) -> AsyncIterator[Any]:
    """Open an httpx response. The time limit covers the whole block."""
    if not Outward.allowed:
        raise NotFetched("this installation asks no other host (OUTWARD_REQUESTS)")
    if wrong := problem(url, development=development, mirror=mirror):
        raise NotFetched(f"it {wrong}")
    try:
        # The span does not contain the address, because a seller's webhook address may contain a
        # key.
        with spans.part(f"HTTP {method}", kind="client", method=method) as span:
            async with (
                asyncio.timeout(seconds),
                _connected(
                    method, url, headers, content, silence or seconds, development, look_up, mirror
                ) as answer,
            ):
                if span is not None:
                    span.note(status=int(answer.status_code))
                yield answer
    except TimeoutError:
        raise HostAway(f"it was not answered within {seconds:.0f} seconds") from None


@asynccontextmanager
async def _connected(
    method: str,
    url: str,
    given: Mapping[str, str],
    content: bytes,
    seconds: float,
    development: bool,
    look_up: Resolver,
    mirror: str | None,
) -> AsyncIterator[Any]:
    # httpx is imported here, because few processes fetch anything, and loading the certificates
    # takes long.
    tls = await asyncio.to_thread(_tls)
    import httpx

    address = await _checked(url, development, look_up, mirror)
    parts = urlsplit(url)
    host = (parts.hostname or "").strip("[]")
    try:
        pinned = httpx.URL(url).copy_with(host=str(address))
        headers = {"User-Agent": "cardsync", **given, "Host": parts.netloc}
        async with (
            httpx.AsyncClient(
                verify=tls, trust_env=False, follow_redirects=False, timeout=seconds
            ) as client,
            client.stream(
                method,
                pinned,
                headers=headers,
                content=content or None,
                extensions={"sni_hostname": host},
            ) as answer,
        ):
            _same_peer(answer.extensions["network_stream"], address)
            yield answer
    except httpx.TransportError:
        raise HostAway("its host cannot be reached safely") from None
    except (httpx.HTTPError, httpx.InvalidURL):
        raise NotFetched("its host cannot be reached safely") from None


async def _body(answer: Any, asked: FetchRequest) -> bytes:
    """Return the body of an httpx response if it is the requested file. Raises NotFetched."""
    if answer.status_code != 200:
        away = HostAway if answer.status_code in _BUSY else NotFetched
        raise away(f"the server answered with status {answer.status_code}")
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not asked.is_kind(kind):
        raise NotFetched(asked.refused_as)
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise NotFetched("it is packed")
    body = bytearray()
    async for part in answer.aiter_raw(8_192):
        body += part
        if len(body) > asked.bytes_most:
            raise NotFetched(f"it is larger than {asked.bytes_most} bytes")
    return bytes(body)


async def _checked(url: str, development: bool, look_up: Resolver, mirror: str | None) -> Address:
    """Return the address to connect to. Raises NotFetched unless all addresses of the host are
    allowed.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        found = await look_up(host, parts.port or 443)
    except (OSError, UnicodeError):
        raise HostAway("its host is not known") from None
    if found and parts.netloc == mirror:
        return found[0]
    # In development, a name of this computer may resolve only to a loopback address.
    own = development and f"{host_of(url)}" in OWN_MACHINE
    good = [one for one in found if (one.is_loopback if own else is_public(one))]
    if not found or len(good) < len(found):
        raise NotFetched("its host is not in the public internet")
    return good[0]


def _same_peer(stream: Any, address: Address) -> None:
    peer = stream.get_extra_info("server_addr")
    if not peer or ip_address(peer[0]) != address:
        raise NotFetched("its host cannot be reached safely")
