"""Reads the time, as no other module may: other code takes `now` as an argument or calls these
functions.

Tests move the clock with `shift` and freeze it with `stop`, for this process only.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_offset = timedelta()
_stopped_at: datetime | None = None


def now() -> datetime:
    """Return the current moment, timezone-aware, in UTC."""
    return (_stopped_at or datetime.now(UTC)) + _offset


def monotonic() -> float:
    """Return seconds for measuring durations; `shift` does not change them."""
    return time.perf_counter()


def shift(delta: timedelta) -> None:
    """Move this process's clock by `delta` (tests only)."""
    global _offset
    _offset += delta


def stop() -> None:
    """Freeze this process's clock, so that only `shift` moves it (tests only)."""
    global _stopped_at
    _stopped_at = datetime.now(UTC)


def reset() -> None:
    """Undo every `shift` and `stop`."""
    global _offset, _stopped_at
    _offset = timedelta()
    _stopped_at = None


def rfc3339(moment: datetime) -> str:
    """Return a text such as `2026-11-21T08:00:00Z`, with microseconds only if they are not zero."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def rfc3339_or_none(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment else None


def exact(moment: datetime) -> str:
    """Return a text such as `2026-11-21T08:00:00.000000Z`, always with six fractional digits, for
    revisions.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970, PostgreSQL's own precision, so nothing is lost."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def read_moment(value: str | None) -> datetime | None:
    """Parse an ISO 8601 text; without a zone it is UTC. Return None for any other text."""
    try:
        moment = datetime.fromisoformat(value.strip()) if value else None
        if moment is None or moment.tzinfo is None:
            return moment and moment.replace(tzinfo=UTC)
        # A time in the calendar's first or last hours may not exist in UTC.
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
