"""Decides when installed catalogs are updated: every night if the person who decides about them
chose so, otherwise by the installation's setting.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import run
from cardsync.platform.settings import Settings

# Few shops work then, and the day's sources have been published.
NIGHT: Final = time(4)
_CHOSEN: Final = "SELECT night_zone, tells FROM catalog_updates"
_CHOOSE: Final = """
    INSERT INTO catalog_updates (night_zone, tells) VALUES (:zone, :tells)
    ON CONFLICT (id) DO UPDATE SET night_zone = excluded.night_zone, tells = excluded.tells
"""


class Updates(NamedTuple):
    """`days` is how often a catalog is renewed, 0 for never; with `zone` it is every night. `tells`
    is whether an old one causes a notice.
    """

    days: int
    zone: str | None = None
    tells: bool = True

    def due_before(self, now: datetime) -> datetime | None:
        """Return the moment before which the last check of a catalog must be for it to be due."""
        if self.zone is not None:
            return last_night(now, self.zone)
        return now - timedelta(days=self.days) if self.days else None


def last_night(now: datetime, zone: str) -> datetime:
    """Return the last moment at which the clocks of a zone showed the hour of updates."""
    local = now.astimezone(ZoneInfo(zone))
    night = datetime.combine(local.date(), NIGHT, ZoneInfo(zone))
    if night > local:
        night = datetime.combine(local.date() - timedelta(days=1), NIGHT, ZoneInfo(zone))
    return night


async def updates_of(session: AsyncSession, settings: Settings) -> Updates:
    found = (await session.execute(text(_CHOSEN))).one_or_none()
    if found is None:
        return Updates(settings.catalog_renewal_days)
    days = settings.catalog_renewal_days if found.night_zone is None else 1
    return Updates(days, found.night_zone, found.tells)


async def choose(session: AsyncSession, zone: str | None, tells: bool) -> None:
    await run(session, _CHOOSE, {"zone": zone, "tells": tells})
