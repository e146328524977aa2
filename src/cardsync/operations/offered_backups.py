"""Lists the backups from which a new installation can be restored: the backups in its folder and in
its bucket, newest first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from cardsync.operations import requested_restore
from cardsync.operations.backup_bucket import Bucket
from cardsync.platform import errors
from cardsync.platform.backups import backup_folder
from cardsync.platform.backups.backup_folder import Manifest
from cardsync.platform.settings import Settings

# `cardsync restore NAME` accepts any backup.
_LISTED: Final = 12


class OfferedBackup(NamedTuple):
    name: str
    made_at: datetime
    cards: int


def offered(settings: Settings) -> tuple[list[OfferedBackup], str]:
    """Return the newest backups with a shop, and why the bucket cannot be read (empty if it can).
    The list is empty if no `serve` process restores backups. The function reads files and queries
    the bucket.
    """
    if requested_restore.read(settings.data_dir) is None:
        return [], ""
    found: dict[str, Manifest] = {}
    problem = ""
    if settings.backup_url:
        try:
            found = Bucket(settings.backup_url).manifests()
        except errors.CommandError as e:
            problem = str(e)
    here = backup_folder.listed(settings.backups_folder)
    found |= {one.name: one.manifest for one in here}
    newest = sorted(found, reverse=True)
    useful = [name for name in newest if backup_folder.has_shop(found[name])][:_LISTED]
    return [
        OfferedBackup(name, found[name].made_at, found[name].tables.get("card", 0))
        for name in useful
    ], problem
