"""Computes the times of retries and of daily mails. Pure.

The Standard Webhooks specification proposes the pauses. The last try is three days after the first
try.
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
# The longest pause for a receiver, so that it gets the waiting notices soon after it works again.
_LONGEST_REST: Final = timedelta(hours=1)
# A pause is longer by up to this share, so that deliveries that failed at the same time are not all
# sent again at the same time.
_SPREAD: Final = 0.1
DIGEST_AT: Final = time(8)


def next_try(
    tries: int,
    first_at: datetime,
    now: datetime,
    name: str,
) -> datetime | None:
    """Return the time of the next try after `tries` failures, or None to give up. The random part
    of the pause depends only on `name` and `tries`.
    """
    end = first_at + THREE_DAYS
    if now >= end:
        return None
    if not 1 <= tries <= len(_PAUSES):
        return end
    pause = _PAUSES[tries - 1]
    return min(now + pause + pause * _SPREAD * _part(f"{name} {tries}"), end)


def rest(failures: int) -> timedelta:
    """Return the pause for a receiver after this number of consecutive failures."""
    return min(_PAUSES[min(failures, len(_PAUSES)) - 1], _LONGEST_REST)


def _part(text: str) -> float:
    """Return a number from 0 to 1 that depends only on `text`."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def next_digest(now: datetime, zone: str) -> datetime:
    """Return the next time of `DIGEST_AT` in the shop's time zone."""
    here = now.astimezone(ZoneInfo(zone))
    day = here.date() if here.time() < DIGEST_AT else here.date() + timedelta(days=1)
    return datetime.combine(day, DIGEST_AT, here.tzinfo).astimezone(now.tzinfo)
