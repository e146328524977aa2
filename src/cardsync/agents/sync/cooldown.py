"""Computes the cooldown after a completed full or pricing sync: the remaining seconds and the rule
that applies. Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

Meets = Literal["nothing", "metered", "free"]
SECOND = timedelta(seconds=1)


def whole_seconds(span: timedelta) -> int:
    """Return the seconds, rounded up, so that a client that waits this long has waited enough."""
    return -(-span // SECOND)


def remaining_seconds(last_pricing_at: datetime | None, cooldown: timedelta, now: datetime) -> int:
    """Return 0 outside the cooldown, else at least 1.

    A host with a wrong clock never makes the result longer than the cooldown.
    """
    if last_pricing_at is None:
        return 0
    return whole_seconds(min(max(last_pricing_at + cooldown - now, timedelta()), cooldown))


def meets(remaining: int, *, metering: bool, paid: bool) -> Meets:
    """Return how the cooldown applies: with metering, all accounts wait or spend a credit; without
    metering, only free accounts wait.

    The cooldown applies to every kind of sync.
    """
    if remaining == 0:
        return "nothing"
    if metering:
        return "metered"
    return "nothing" if paid else "free"
