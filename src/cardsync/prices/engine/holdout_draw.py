"""Computes the random seed by which a rule's hold-out cards are drawn. Each window of 30 days has
another seed. Pure.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Final

WINDOW: Final = timedelta(days=30)
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)


def window(now: datetime) -> int:
    """Return the number of the 30-day window that contains `now`, counted from 1970 in UTC."""
    return (now - _FIRST) // WINDOW


def begin_of(number: int) -> datetime:
    return _FIRST + number * WINDOW


def seed(rule_id: int, now: datetime) -> int:
    """Return the rule's 64-bit seed for the 30-day window that contains `now`."""
    drawn_from = f"{rule_id}:{window(now)}".encode()
    return int.from_bytes(hashlib.sha256(drawn_from).digest()[:8], "big")
