"""Computes when a cap's period begins: the day or the week (Monday) in the seller's zone. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo


def day_start(now: datetime, zone: str) -> datetime:
    """Return the last midnight in the seller's time zone, also on days of 23 or 25 hours."""
    return _midnight(now, zone, 0)


def week_start(now: datetime, zone: str) -> datetime:
    return _midnight(
        now,
        zone,
        now.astimezone(ZoneInfo(zone)).weekday(),
    )


def _midnight(now: datetime, zone: str, days_ago: int) -> datetime:
    there = now.astimezone(ZoneInfo(zone))
    return datetime.combine(
        there.date() - timedelta(days=days_ago),
        time(),
        ZoneInfo(zone),
    ).astimezone(UTC)
