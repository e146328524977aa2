"""Reads the clock and sleeps, as no other module of the agent may.

All moments are in UTC.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime


def now() -> datetime:
    """Return the current moment, timezone-aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds for measuring durations."""
    return time.monotonic()


@dataclass(frozen=True)
class Mark:
    """A moment on both clocks, because no clock alone gives an age: `monotonic` may stop while the
    computer sleeps, and `now` may be set back.
    """

    wall: datetime
    steady: float

    def is_within(self, seconds: float) -> bool:
        wall = (now() - self.wall).total_seconds()
        return 0 <= wall < seconds and monotonic() - self.steady < seconds


def mark() -> Mark:
    return Mark(now(), monotonic())


def sleep(seconds: float) -> None:
    """Sleep; callers that must stay interruptible use `pace.Stop.sleep`."""
    time.sleep(seconds)


def moment(epoch: float) -> datetime:
    """Return a file's mtime as a moment in UTC."""
    return datetime.fromtimestamp(epoch, UTC)


def rfc3339(when: datetime) -> str:
    """Format a moment as `2026-11-21T08:00:00Z`, with microseconds only if they are not zero."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_rfc3339(text: str) -> datetime:
    """Parse a text from `rfc3339`."""
    return datetime.fromisoformat(text)


def for_file_name(when: datetime) -> str:
    """Format a moment as `20261121T080000Z`."""
    return when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def for_people(when: datetime) -> str:
    """Format a moment in the computer's local time, for people."""
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def local_wall(when: datetime) -> datetime:
    """Return the local time of a moment, without a zone."""
    return when.astimezone().replace(tzinfo=None)


def from_wall(wall: datetime) -> datetime:
    """Return the moment, in UTC, whose local time is `wall`."""
    return wall.astimezone(UTC)


def span(seconds: float) -> str:
    """Format a duration for people: `45 s`, `59 min`, `3 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"
