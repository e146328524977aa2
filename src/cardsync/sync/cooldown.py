"""The cooldown after a completed full or pricing cycle: how long it still lasts, and what a
manual request meets. Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

Meets = Literal["nothing", "metered", "free"]
SECOND = timedelta(seconds=1)


def whole_seconds(span: timedelta) -> int:
    """Rounded up: whoever waits so long has waited enough."""
    return -(-span // SECOND)


def remaining_seconds(last_pricing_at: datetime | None, cooldown: timedelta, now: datetime) -> int:
    """0 outside the cooldown, else at least 1.

    Hosts whose clocks differ never make it longer than it is.
    """
    if last_pricing_at is None:
        return 0
    return whole_seconds(min(max(last_pricing_at + cooldown - now, timedelta()), cooldown))


def meets(remaining: int, *, metering: bool, paid: bool) -> Meets:
    """With metering everyone waits or spends a credit; without it only free accounts wait.

    It binds every kind of sync.
    """
    if remaining == 0:
        return "nothing"
    if metering:
        return "metered"
    return "nothing" if paid else "free"
