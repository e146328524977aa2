"""Keeps a public demo harmless. Its visitors share one shop, and their changes are undone every
night.

The module lists the routes on which visitors may write; all other writes are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cardsync.access import tokens
from cardsync.platform import errors

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

# The lists leave out routes by which a visitor could lock out others, upload pictures, or name a
# host that the service then contacts.
_PAGES: Final = (
    "activity|add-cards|buying|buylist|cards|counts|customers|lists|o|orders|p|plans|pricing|print"
    "|profit|pulls|recommendations|returns|shelves|sign-in|sign-out"
)
_ROUTES: Final = (
    "buying|card_columns|cards|counts|customers|discovery|lists|orders|pricing|pull_links"
    "|pull_sessions|quick_add|recommendations|returns|saved_searches|session|shelves"
    "|v1/agent/activity|v1/pricing"
)
_OPEN: Final = re.compile(f"/(?:(?:{_PAGES})|api/(?:{_ROUTES}))(?:/.*)?")


def is_open(path: str) -> bool:
    """Return whether visitors of a public demo may write to this path."""
    return _OPEN.fullmatch(path) is not None


def sign_in_of(public_demo: str) -> tuple[str, str] | None:
    """Return the email address and the password in the setting PUBLIC_DEMO."""
    email, _, password = public_demo.partition(":")
    return (email, password) if email else None


def kept_harmless(app: ASGIApp) -> ASGIApp:
    """Middleware that refuses a visitor's writes in a public demo. Raises PublicDemo."""

    async def harmless(scope: Scope, receive: Receive, send: Send) -> None:
        reads = scope.get("method") in tokens.SAFE_METHODS or scope["route_handler"].opt.get(
            "reads"
        )
        if not reads and not is_open(scope["path"]):
            raise errors.PublicDemo
        await app(scope, receive, send)

    return harmless
