"""Decides which redirect addresses a client may have, and whether a request's address is among
them. Pure.

Addresses are compared as texts, except that any port of 127.0.0.1 and [::1] is accepted, because a
program on the member's own computer listens on a free port (RFC 8252, section 7.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlencode, urlsplit

from cardsync.web.public_fetch import OWN_MACHINE, host_of

CHARACTERS_MOST: Final = 2_000
# Visible ASCII characters, without those that browsers and programs interpret differently.
_PLAIN: Final = re.compile(r"[!$-;=?-\[\]_a-z~]+")
_LOOPBACK: Final = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?([/?].*)?")
# Browsers handle these schemes themselves. Any other scheme may belong to a program.
_NOT_OWN: Final = frozenset(
    ("about", "blob", "chrome", "content", "data", "file", "filesystem", "ftp", "ftps", "gopher",
     "intent", "jar", "javascript", "mailto", "resource", "sms", "tel", "urn", "vbscript",
     "view-source", "ws", "wss")
)  # fmt: skip


def problem(uri: object) -> str | None:
    """Return why no client may have this redirect address; None if a client may."""
    if not isinstance(uri, str) or len(uri) > CHARACTERS_MOST or not _PLAIN.fullmatch(uri):
        return f"must be an address of at most {CHARACTERS_MOST} plain characters"
    scheme, colon, rest = uri.partition(":")
    if not colon or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        return "must begin with a scheme in lower case"
    if scheme in ("http", "https"):
        host = host_of(uri)
        if not rest.startswith("//") or host is None:
            return "must name a host in lower case, and a port from 1 to 65535, without a user"
        if scheme == "http" and host not in OWN_MACHINE:
            return "must be https, but on the member's own machine"
        return None
    if scheme in _NOT_OWN:
        return f"must not be {scheme}:"
    return None if rest else "must not be a scheme alone"


def is_one_of(uri: str, registered: Iterable[str]) -> bool:
    """Return whether the client registered this redirect address and may have it."""
    if problem(uri):
        return False
    wanted = _LOOPBACK.fullmatch(uri)
    for known in registered:
        if uri == known:
            return True
        here = _LOOPBACK.fullmatch(known)
        if wanted and here and wanted.groups() == here.groups():
            return True
    return False


def shown(uri: str) -> str:
    """Return the target of the address in a few words for a page: its host or its scheme."""
    host = host_of(uri) or f"{uri.partition(':')[0]}:"
    return f"{host} (a program on your own computer)" if host in OWN_MACHINE else host


def source(uri: str) -> str:
    """Return the address's origin for a content security policy. For an IPv6 address, return only
    the scheme, because such a policy cannot contain IPv6 addresses.
    """
    scheme = uri.partition(":")[0]
    if scheme not in ("http", "https") or "[" in urlsplit(uri).netloc:
        return f"{scheme}:"
    return f"{scheme}://{urlsplit(uri).netloc}"


def with_answer(uri: str, **answer: str | None) -> str:
    """Return the redirect address with the parameters of an authorization response."""
    told = urlencode({name: value for name, value in answer.items() if value is not None})
    return f"{uri}{'&' if '?' in uri else '?'}{told}"
