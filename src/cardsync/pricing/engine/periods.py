"""When a cap's period began: a moment and a seller's zone in, the start of the day or of the week
(Monday) out. Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo


def day_start(now: datetime, zone: str) -> datetime:
    """Midnight in the seller's zone, also where it was not 24 hours ago."""
    return _midnight(now, zone, 0)


def week_start(now: datetime, zone: str) -> datetime:
    return _midnight(now, zone, now.astimezone(ZoneInfo(zone)).weekday())


def _midnight(now: datetime, zone: str, days_ago: int) -> datetime:
    there = now.astimezone(ZoneInfo(zone))
    return datetime.combine(
        there.date() - timedelta(days=days_ago), time(), ZoneInfo(zone)
    ).astimezone(UTC)
