"""The headers of every answer that restrict what a browser may do with it. Pages set some of these
headers themselves (`pages.py`), and those values are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cardsync.access import tokens
from cardsync.platform.settings import Settings

RawHeaders = list[tuple[bytes, bytes]]
# An answer other than a page may load nothing and may not be framed. No other site may read an
# answer or keep control of a window that opens it, and no page may use a device's sensors.
ALWAYS: Final = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
# The header is valid for a year, and only for this host, because its subdomains are unknown.
OVER_HTTPS: Final = {"strict-transport-security": "max-age=31536000"}
_NO_STORE: Final = (b"cache-control", b"no-store")


def fixed_headers(settings: Settings) -> RawHeaders:
    told = ALWAYS | (OVER_HTTPS if tokens.is_secure(settings.origin) else {})
    return [(name.encode(), value.encode()) for name, value in told.items()]


def missing_headers(
    fixed: RawHeaders, given: RawHeaders, sent: Iterable[tuple[bytes, bytes]]
) -> RawHeaders:
    """Return the headers that an answer lacks; `sent` are the request's headers. An answer to a
    request with a cookie must not be cached: unlike an Authorization header, a cookie does not stop
    shared caches.
    """
    names = {name for name, _ in given}
    missing = [pair for pair in fixed if pair[0] not in names]
    if _NO_STORE[0] not in names and any(name == b"cookie" for name, _ in sent):
        missing.append(_NO_STORE)
    return missing
