"""Decides when the next backup is due and which backups are kept. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import datetime, timedelta
from typing import Final

EVERY: Final = timedelta(days=1)
# After this time a daily backup counts as missed: a laptop may have been closed for a day.
TOO_OLD: Final = timedelta(days=2)
# If backups are tested by restoring them, this is the longest time without a passed test.
UNPROVEN: Final = timedelta(days=3)
# Time until a failed backup is tried again.
AFTER_A_FAILURE: Final = timedelta(hours=1)

DAILY, WEEKLY, MONTHLY = 7, 4, 12
_PERIODS: Final[tuple[tuple[int, Callable[[datetime], Hashable]], ...]] = (
    (DAILY, lambda at: at.date()),
    (WEEKLY, lambda at: at.isocalendar()[:2]),
    (MONTHLY, lambda at: (at.year, at.month)),
)


def is_due(now: datetime, newest: datetime | None, last_failure: datetime | None = None) -> bool:
    """Return whether a backup is due now."""
    if last_failure is not None and now - last_failure < AFTER_A_FAILURE:
        return False
    return newest is None or now - newest >= EVERY


def is_too_old(now: datetime, newest: datetime | None) -> bool:
    """Return whether the newest backup is missing or too old."""
    return newest is None or now - newest > TOO_OLD


def is_unproven(newest: datetime | None, rehearsed: datetime) -> bool:
    """Return whether the newest backup is much newer than the last backup that passed a restore
    test.
    """
    return newest is not None and newest - rehearsed > UNPROVEN


def kept(made: Iterable[datetime]) -> set[datetime]:
    """Return the times of the backups to keep: all backups of the last day, because a person may
    have made them on purpose, and the newest backup of each day, week and month, for the last 7
    days, 4 weeks and 12 months that have a backup.
    """
    newest_first = sorted(made, reverse=True)
    keep = {at for at in newest_first if newest_first[0] - at < EVERY}
    for most, period in _PERIODS:
        newest_of: dict[Hashable, datetime] = {}
        for at in newest_first:
            newest_of.setdefault(period(at), at)
        keep |= set(sorted(newest_of.values(), reverse=True)[:most])
    return keep
