"""Reads the time, which no other module does: everything else takes `now` as an argument or calls
these functions.

Tests move the clock with `shift` and `stop` it, which holds for this process only.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_offset = timedelta()
_stopped_at: datetime | None = None


def now() -> datetime:
    """The current moment, timezone-aware, UTC."""
    return (_stopped_at or datetime.now(UTC)) + _offset


def monotonic() -> float:
    """Seconds for measuring durations; never moved by `shift`."""
    return time.perf_counter()


def shift(delta: timedelta) -> None:
    """Move this process's clock by `delta` (tests only)."""
    global _offset
    _offset += delta


def stop() -> None:
    """Stop this process's clock, so that only `shift` moves it (tests only)."""
    global _stopped_at
    _stopped_at = datetime.now(UTC)


def reset() -> None:
    """Take every `shift` back, and let the clock go."""
    global _offset, _stopped_at
    _offset = timedelta()
    _stopped_at = None


def rfc3339(moment: datetime) -> str:
    """`2026-11-21T08:00:00Z`; microseconds only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def rfc3339_or_none(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment else None


def exact(moment: datetime) -> str:
    """`2026-11-21T08:00:00.000000Z`: a revision always has six fractional digits."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def microseconds(moment: datetime) -> int:
    """Since 1970, as PostgreSQL keeps it too: nothing is lost."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def read_moment(value: str | None) -> datetime | None:
    """An ISO 8601 text as a moment, UTC where it names no zone; None for anything else."""
    try:
        moment = datetime.fromisoformat(value.strip()) if value else None
        if moment is None or moment.tzinfo is None:
            return moment and moment.replace(tzinfo=UTC)
        # The first and last hours of the calendar exist in their own zone but not in UTC.
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
