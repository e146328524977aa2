"""Fetches a small JSON document from an address that a stranger names, and from nowhere but the
public internet.

The host is looked up once, and the connection goes to the address that was checked: a second
look-up may lead elsewhere. Redirects are not followed, and proxies of the environment not used.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from cardsync.assistant.oauth.redirects import OWN_MACHINE, host_of

SECONDS: Final = 5.0
BYTES_MOST: Final = 65_536
CHARACTERS_MOST: Final = 500
_PLAIN: Final = re.compile(r"[!$-;=?-\[\]_a-z~]+", re.IGNORECASE)
_DOTS: Final = re.compile(r"/(\.|%2e){1,2}(/|$)", re.IGNORECASE)
Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[Address]]]
# The IPv6 addresses that are routed to hosts, without those that carry an IPv4 address inside.
_UNICAST: Final = ip_network("2000::/3")


class NotFetched(Exception):
    """The message says why, for a page."""


def problem(url: str, *, development: bool) -> str | None:
    """Return why such an address is not fetched; None if it may be. Development takes those of
    this machine, too.
    """
    if len(url) > CHARACTERS_MOST or not _PLAIN.fullmatch(url):
        return "is no plain address"
    try:
        parts = urlsplit(url)
        host, port = host_of(url), parts.port
    except ValueError:
        return "is no address"
    here = development and host in OWN_MACHINE
    if parts.scheme != "https" and not (here and parts.scheme == "http"):
        return "must begin with https://"
    if host is None:
        return "must name a host in lower case, without a user"
    if port not in (None, 443) and not here:
        return "must have no port of its own"
    if parts.path in ("", "/") or _DOTS.search(parts.path):
        return "must have a path, without dots between its slashes"
    return None


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _UNICAST or address.sixtofour or address.teredo:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, as this machine finds them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(place[0]) for *_, place in found]


async def fetch_json(url: str, *, development: bool = False, look_up: Resolver = resolve) -> Any:
    """Return the document. Raises NotFetched."""
    if wrong := problem(url, development=development):
        raise NotFetched(f"it {wrong}")
    try:
        async with asyncio.timeout(SECONDS):
            return await _fetched(url, development, look_up)
    except TimeoutError:
        raise NotFetched(f"it was not answered within {SECONDS:.0f} seconds") from None


@cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context(trust_env=False)


async def _fetched(url: str, development: bool, look_up: Resolver) -> Any:
    # Few processes fetch anything, and the certificates take long to read.
    tls = await asyncio.to_thread(_tls)
    import httpx

    address = await _checked(url, development, look_up)
    parts = urlsplit(url)
    host = (parts.hostname or "").strip("[]")
    try:
        pinned = httpx.URL(url).copy_with(host=str(address))
        headers = {
            "Host": parts.netloc,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "cardsync",
        }
        async with (
            httpx.AsyncClient(
                verify=tls, trust_env=False, follow_redirects=False, timeout=SECONDS
            ) as client,
            client.stream(
                "GET", pinned, headers=headers, extensions={"sni_hostname": host}
            ) as answer,
        ):
            _same_peer(answer.extensions["network_stream"], address)
            if answer.status_code != 200:
                raise NotFetched(f"it was answered with status {answer.status_code}")
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json" and not kind.endswith("+json"):
                raise NotFetched("it is no JSON")
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise NotFetched("it is packed")
            body = bytearray()
            async for part in answer.aiter_raw(8_192):
                body += part
                if len(body) > BYTES_MOST:
                    raise NotFetched(f"it is larger than {BYTES_MOST} bytes")
            return msgspec.json.decode(bytes(body))
    except (httpx.HTTPError, httpx.InvalidURL):
        raise NotFetched("its host cannot be reached safely") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotFetched("it is no JSON") from None


async def _checked(url: str, development: bool, look_up: Resolver) -> Address:
    """Return the one address to connect to."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        found = await look_up(host, parts.port or 443)
    except (OSError, UnicodeError):
        raise NotFetched("its host is not known") from None
    # In development the machine's own names lead to this machine, and nowhere else.
    own = development and f"{host_of(url)}" in OWN_MACHINE
    good = [one for one in found if (one.is_loopback if own else is_public(one))]
    if not found or len(good) < len(found):
        raise NotFetched("its host is not in the public internet")
    return good[0]


def _same_peer(stream: Any, address: Address) -> None:
    peer = stream.get_extra_info("server_addr")
    if not peer or ip_address(peer[0]) != address:
        raise NotFetched("its host cannot be reached safely")
