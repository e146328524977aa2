"""Makes and checks the secrets of sessions and invitations, and the cookie that contains a
session's token. Pure, except that new tokens are random.

A session's CSRF token is derived from its cookie, so nothing more is stored, and a page that cannot
read the cookie cannot compute the token. The token is masked with random bytes each time it is
sent, so that nobody can guess it from the length of a compressed page.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable

_FORM = re.compile(r"[A-Za-z0-9_-]{43}")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
COOKIE = "cardsync_session"
_CSRF_BYTES = 32


def new_token() -> str:
    """Return a token of 256 random bits."""
    return secrets.token_urlsafe(32)


def is_well_formed(token: str) -> bool:
    return _FORM.fullmatch(token) is not None


def token_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def csrf_token(session_token: str) -> str:
    mask = secrets.token_bytes(_CSRF_BYTES)
    return urlsafe_b64encode(mask + _masked(_csrf(session_token), mask)).decode()


def csrf_is_right(session_token: str, given: str | None) -> bool:
    try:
        decoded = urlsafe_b64decode((given or "").encode("ascii"))
    except ValueError:
        return False
    if len(decoded) != 2 * _CSRF_BYTES:
        return False
    right = _csrf(session_token)
    return secrets.compare_digest(right, _masked(decoded[_CSRF_BYTES:], decoded[:_CSRF_BYTES]))


def signed_number(session_token: str, number: int) -> str:
    """Return a number for an address with a signature that only this session's pages can make."""
    key = hashlib.sha256(b"number " + session_token.encode()).digest()
    return f"{number}-{hmac.new(key, str(number).encode(), 'sha256').hexdigest()[:24]}"


def read_signed_number(session_token: str, given: str) -> int | None:
    """Return the number in a text of `signed_number`; None for any other text."""
    number = given.partition("-")[0]
    if not re.fullmatch(r"[0-9]{1,18}", number):
        return None
    right = signed_number(session_token, int(number))
    return int(number) if secrets.compare_digest(right.encode(), given.encode()) else None


def _csrf(session_token: str) -> bytes:
    return hashlib.sha256(b"csrf " + session_token.encode()).digest()


def _masked(value: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(value, mask, strict=True))


def is_secure(origin: str) -> bool:
    return origin.startswith("https://")


def cookie_name(origin: str) -> str:
    """Return the cookie's name. The prefix `__Host-` binds a cookie to this host; browsers accept
    it only with Secure.
    """
    return f"__Host-{COOKIE}" if is_secure(origin) else COOKIE


def session_token(cookies: Iterable[str], origin: str) -> str | None:
    """Return the session token in the Cookie headers, if it is well formed."""
    name = cookie_name(origin)
    for header in cookies:
        for pair in header.split(";"):
            given, _, value = pair.strip().partition("=")
            if given == name and is_well_formed(value):
                return value
    return None


def comes_from_here(
    fetch_site: str | None,
    origin: str | None,
    hosts: Collection[str],
    ours: str,
) -> bool:
    """Return whether the request comes from our own pages, by the headers that a browser sends. A
    client without these headers is not a browser, or is a very old one, and is trusted.

    `hosts` are other names or addresses of this service. An Origin with one of them must have the
    scheme of `ours`.
    """
    if fetch_site not in (None, "same-origin", "none"):
        return False
    scheme = ours.partition("://")[0]
    return origin in (None, ours, *(f"{scheme}://{host}" for host in hosts))
