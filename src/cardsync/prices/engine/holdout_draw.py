"""Computes the number that draws the cards of a rule's hold-out for the thirty days of a moment.
Pure.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Final

WINDOW: Final = timedelta(days=30)
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)


def window(now: datetime) -> int:
    """Return the number of the thirty days, counted from 1970 in UTC."""
    return (now - _FIRST) // WINDOW


def begin_of(number: int) -> datetime:
    return _FIRST + number * WINDOW


def seed(rule_id: int, now: datetime) -> int:
    """Return the rule's number of 64 bits for these thirty days."""
    drawn_from = f"{rule_id}:{window(now)}".encode()
    return int.from_bytes(hashlib.sha256(drawn_from).digest()[:8], "big")
