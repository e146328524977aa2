"""Decides when installed catalogs are updated: every night, if a person chose that on a page;
otherwise by the installation's setting.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.database.session import run
from cardsync.platform.settings import Settings

# The time of nightly updates: few shops work then, and sources have published the day's files.
NIGHT: Final = time(4)
_CHOSEN: Final = "SELECT night_zone, tells FROM catalog_updates"
_CHOOSE: Final = """
    INSERT INTO catalog_updates (night_zone, tells) VALUES (:zone, :tells)
    ON CONFLICT (id) DO UPDATE SET night_zone = excluded.night_zone, tells = excluded.tells
"""


class Updates(NamedTuple):
    """The times of updates. `days` is the number of days between renewals, 0 for never. With
    `zone`, catalogs are renewed every night in this time zone. `tells` is whether an old catalog
    causes a notice.
    """

    days: int
    zone: str | None = None
    tells: bool = True

    def due_before(self, now: datetime) -> datetime | None:
        """Return the moment before which a catalog's last check makes it due; None for never."""
        if self.zone is not None:
            return last_night(now, self.zone)
        return now - timedelta(days=self.days) if self.days else None


def last_night(now: datetime, zone: str) -> datetime:
    """Return the last moment at which it was `NIGHT` in a time zone."""
    local = now.astimezone(ZoneInfo(zone))
    night = datetime.combine(local.date(), NIGHT, ZoneInfo(zone))
    if night > local:
        night = datetime.combine(local.date() - timedelta(days=1), NIGHT, ZoneInfo(zone))
    return night


async def updates_of(source: Source, settings: Settings) -> Updates:
    for zone, tells in await rows_of(source)(_CHOSEN, {}):
        return Updates(settings.catalog_renewal_days if zone is None else 1, zone, tells)
    return Updates(settings.catalog_renewal_days)


async def choose(session: AsyncSession, zone: str | None, tells: bool) -> None:
    await run(session, _CHOOSE, {"zone": zone, "tells": tells})
