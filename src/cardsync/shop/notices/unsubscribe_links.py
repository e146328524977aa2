"""Signs the link with which a member stops all mail. The link permits nothing else, needs no
session and does not expire.
"""

from __future__ import annotations

import hmac
import re
from typing import Final, NamedTuple

from cardsync.platform.secret import derived
from cardsync.platform.settings import Settings

PATH: Final = "/unsubscribe"
_FORM: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([0-9a-f]{40})")


class Unsubscriber(NamedTuple):
    seller_id: int
    member_id: int


def unsubscribe_url(settings: Settings, who: Unsubscriber) -> str:
    return f"{settings.origin}{PATH}/{_token(settings, who)}"


def read_token(settings: Settings, token: str) -> Unsubscriber | None:
    """Return the member of a link's token; None if this server has not signed the token."""
    found = _FORM.fullmatch(token)
    if found is None:
        return None
    who = Unsubscriber(int(found[1]), int(found[2]))
    return who if hmac.compare_digest(_token(settings, who), token) else None


def _token(settings: Settings, who: Unsubscriber) -> str:
    name = f"{who.seller_id}-{who.member_id}"
    signature = hmac.new(derived(settings, "unsubscribe"), name.encode(), "sha256")
    return f"{name}-{signature.hexdigest()[:40]}"
