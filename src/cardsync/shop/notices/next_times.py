"""Computes the times of retries and of a day's mail. Pure.

The pauses are those that the Standard Webhooks specification proposes; the last try is three days
after the first.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

THREE_DAYS: Final = timedelta(days=3)
_PAUSES: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
)
# The longest time until a receiver that works again gets the waiting notices.
_LONGEST_REST: Final = timedelta(hours=1)
# Retries are spread: deliveries that failed together are not sent together again.
_SPREAD: Final = 0.1
DIGEST_AT: Final = time(8)


def next_try(
    tries: int,
    first_at: datetime,
    now: datetime,
    name: str,
) -> datetime | None:
    """Return the time of the next try after `tries` failures, or None to give up.
    `name` spreads the times: the same one gives the same time.
    """
    end = first_at + THREE_DAYS
    if now >= end:
        return None
    if not 1 <= tries <= len(_PAUSES):
        return end
    pause = _PAUSES[tries - 1]
    return min(now + pause + pause * _SPREAD * _part(f"{name} {tries}"), end)


def rest(failures: int) -> timedelta:
    """Return the pause for a receiver after the given number of failures in a row."""
    return min(_PAUSES[min(failures, len(_PAUSES)) - 1], _LONGEST_REST)


def _part(text: str) -> float:
    """Return a number from 0 to 1 that depends only on a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def next_digest(now: datetime, zone: str) -> datetime:
    """Return the next morning's hour of the shop's time zone."""
    here = now.astimezone(ZoneInfo(zone))
    day = here.date() if here.time() < DIGEST_AT else here.date() + timedelta(days=1)
    return datetime.combine(day, DIGEST_AT, here.tzinfo).astimezone(now.tzinfo)
