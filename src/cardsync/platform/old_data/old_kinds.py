"""Declares the kinds of rows that move to the object store when they are old. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cardsync.platform.settings import Settings

# The folder in the object store.
FOLDER: Final = "old"


@dataclass(frozen=True)
class Kind:
    """A kind of rows of one table. `moment` is the column of their age; a file contains the rows in
    the order of `key`, a whole number. `days` names the setting of their retention, and `which`
    selects the rows of `:seller` that may move.
    """

    name: str
    table: str
    moment: str
    key: str
    days: str
    which: str = "true"

    def kept_since(self, settings: Settings, now: datetime) -> datetime:
        """Return the first month that stays in the database: only whole months move."""
        days: int = getattr(settings, self.days)
        return month_of(now - timedelta(days=days))


def month_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_after(month: datetime) -> datetime:
    return month_of(month + timedelta(days=31))


HISTORY: Final = Kind(
    "history", "price_observation", "observed_at", "card_id", "history_retention_days"
)
ACTIVITY: Final = Kind("activity", "activity", "created_at", "id", "activity_retention_days")
# A cycle with screenshots moves only after the sweep of screenshots, because a screenshot refers to
# its cycle.
_WITHOUT_SCREENSHOT: Final = """
    NOT EXISTS (SELECT FROM debug_screenshot s
                 WHERE s.seller_id = :seller AND s.cycle_id = sync_cycle.id)
"""
CYCLES: Final = Kind(
    "cycles", "sync_cycle", "started_at", "id", "cycle_retention_days", _WITHOUT_SCREENSHOT
)
KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in (HISTORY, ACTIVITY, CYCLES)}
