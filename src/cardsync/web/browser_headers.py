"""The headers of every answer that restrict what a browser may do with it. Pages set their own
policies (`pages.py`), which take precedence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cardsync.access import tokens
from cardsync.platform.settings import Settings

RawHeaders = list[tuple[bytes, bytes]]
# Answers other than pages load nothing and are never framed. No other site may read them or keep
# control of a window that opens them, and no page needs a device's sensors.
ALWAYS: Final = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
# A year; for this host alone, because its subdomains are unknown.
OVER_HTTPS: Final = {"strict-transport-security": "max-age=31536000"}
_NO_STORE: Final = (b"cache-control", b"no-store")


def fixed_headers(settings: Settings) -> RawHeaders:
    told = ALWAYS | (OVER_HTTPS if tokens.is_secure(settings.origin) else {})
    return [(name.encode(), value.encode()) for name, value in told.items()]


def missing_headers(
    fixed: RawHeaders, given: RawHeaders, sent: Iterable[tuple[bytes, bytes]]
) -> RawHeaders:
    """Return the headers that an answer lacks; `sent` are the request's headers. No cache may store
    an answer to a cookie: unlike an Authorization header, a cookie does not stop shared caches.
    """
    names = {name for name, _ in given}
    missing = [pair for pair in fixed if pair[0] not in names]
    if _NO_STORE[0] not in names and any(name == b"cookie" for name, _ in sent):
        missing.append(_NO_STORE)
    return missing
