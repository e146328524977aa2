"""Shows the state of the installation's backups, and requests a backup, for operators and for the
owner of the installation's only shop.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform.backups import requested_backup
from cardsync.platform.backups.backup_reports import BackupState, read_state
from cardsync.platform.database.read_sources import Source
from cardsync.platform.settings import Settings
from cardsync.shop.operators.catalog_installs import may_install, need_installer


class BackupsShown(msgspec.Struct):
    """The state of backups. `waits` is true from the request of a backup until the backup ends."""

    backups: BackupState
    can_ask: bool
    """Whether a backup can be requested here"""
    waits: bool
    """Whether a backup is requested or running"""


async def shown(
    source: Source, caller: Caller, now: datetime, settings: Settings
) -> BackupsShown | None:
    """Return the state of backups; None if the caller may not decide about backups."""
    if not await may_install(source, caller):
        return None
    state = requested_backup.read(settings.data_dir)
    daily = bool(settings.daily_backups)
    found = await read_state(source, now, daily=daily)
    return BackupsShown(found, state is not None, state in ("asked", "running"))


async def ask(
    session: AsyncSession, caller: Caller, now: datetime, settings: Settings
) -> BackupsShown:
    """Request a backup now. Raises OperatorRequired, NotFound."""
    await need_installer(session, caller)
    if requested_backup.ask(settings.data_dir):
        note(session, caller, "operator.backup_asked", "backup requested", now)
        await session.flush()
    found = await shown(session, caller, now, settings)
    assert found is not None
    return found
