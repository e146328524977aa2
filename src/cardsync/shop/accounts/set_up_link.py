"""Makes the link of the set-up page with its token. The link is the same in all processes and on
all hosts that have the same installation secret.
"""

from __future__ import annotations

from secrets import compare_digest

from cardsync.platform.secret import set_up_token
from cardsync.platform.settings import Settings


def link(settings: Settings) -> str:
    return f"{settings.origin}/set-up?token={_token(settings)}"


def opens(settings: Settings, token: str) -> bool:
    return compare_digest(_token(settings).encode(), token.encode())


def _token(settings: Settings) -> str:
    """Return SET_UP_TOKEN or, if it is not set, a token derived from the installation's secret."""
    return settings.set_up_token or set_up_token(settings)
