"""The link of the first run: settings go in; the address of the set-up page with its token comes
out, the same on every process and host that shares the installation's secret.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from cardsync.settings import Settings
from cardsync.storage import secret_key

_WHAT: Final = b"cardsync set-up"


def link(settings: Settings) -> str:
    return f"{settings.origin}/set-up?token={_token(settings)}"


def opens(settings: Settings, token: str) -> bool:
    return secrets.compare_digest(_token(settings).encode(), token.encode())


def _token(settings: Settings) -> str:
    """Return SET_UP_TOKEN, else a token that follows from the installation's secret."""
    return settings.set_up_token or hmac.digest(secret_key(settings), _WHAT, "sha256").hex()[:40]
