"""Makes, keeps, rehearses and restores the backups of one installation, and records each end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Literal

from psycopg.conninfo import make_conninfo

from cardsync import clock, errors
from cardsync.database.migrate import keep_seal
from cardsync.database.urls import libpq_url
from cardsync.operations import (
    backup_folder,
    backup_reports,
    backup_schedule,
    base_backup,
    pg_tools,
    restore_backup,
    take_backup,
)
from cardsync.operations.backup_bucket import Bucket
from cardsync.operations.backup_folder import Backup, Manifest
from cardsync.operations.base_backup import RunCopy
from cardsync.operations.restore_backup import Check, Target
from cardsync.operations.take_backup import Say, Source, UnderWay
from cardsync.secret import former_file, key_file, seal
from cardsync.settings import Settings


class InstallationBackups:
    """The backups of an installation whose database is up. `installs` are folders of PostgreSQL
    that the program brings along; `check` looks at a restored database; `run_copy` runs a copy of
    the database's files.
    """

    def __init__(
        self,
        settings: Settings,
        installs: Iterable[Path],
        check: Check,
        run_copy: RunCopy,
        say: Say,
    ) -> None:
        assert settings.migration_database_url is not None
        self._settings, self._installs = settings, installs
        self._check, self._run_copy, self._say = check, run_copy, say
        self._owner = settings.migration_database_url
        self._folder = settings.backups_folder
        self._bucket = Bucket(settings.backup_url) if settings.backup_url else None
        self._objects = None if settings.object_store_url else settings.data_dir / "objects"
        self._secret = None if settings.secret_key else key_file(settings)

    @cached_property
    def _tools(self) -> Path:
        server = pg_tools.server_version(libpq_url(self._owner, role=None))
        return pg_tools.folder_of(server, self._installs)

    @cached_property
    def target(self) -> Target:
        """The place of a restore. Raises CommandError without the programs of PostgreSQL."""
        return Target(self._owner, self._objects, self._tools)

    def find(self, name: str | None) -> Backup:
        """Return a backup, the newest without a name: of the folder, or a copy of the bucket's."""
        if self._bucket and (name is None or backup_folder.moment_of(name)):
            newest = backup_folder.newest(self._folder)
            here = backup_folder.name_of(newest) if newest else ""
            wanted = name or max(self._bucket.names(), default="")
            is_here = (self._folder / wanted / backup_folder.MANIFEST).exists()
            if wanted and not is_here and (name or wanted > here):
                return self._pulled(self._bucket, wanted)
        return backup_folder.find(self._folder, name)

    def _pulled(self, bucket: Bucket, name: str) -> Backup:
        """Copy a backup from the bucket, and those that it builds on."""
        self._say(f"copying {name} from {bucket.url} …")
        pulled = bucket.pull(name, self._folder)
        parent = pulled.manifest.parent
        if parent and not (self._folder / parent / backup_folder.MANIFEST).exists():
            self._pulled(bucket, parent)
        return pulled

    def take(self) -> Backup:
        """Make a backup now. Raises CommandError."""
        return self._recorded("backup", self._taken)

    def rehearse(self, name: str | None) -> Backup:
        """Restore a backup on trial. Raises CommandError."""

        def rehearsed() -> Backup:
            found = self.find(name)
            with self._restored(found):
                return found

        return self._recorded("rehearsal", rehearsed)

    def daily(self) -> Backup | None:
        """Make the day's backup if it is due, drop what is no longer kept, and rehearse it."""
        made_at = backup_folder.newest(self._folder)
        failed_at = backup_reports.last_failure(self._owner)
        if not backup_schedule.is_due(clock.now(), made_at, failed_at):
            return None
        made = self.take()
        self._prune()
        return self.rehearse(made.name)

    def restore_first(self, name: str, stop_service: Callable[[], None]) -> None:
        """Restore a backup in an installation that has no shop, and had none when it was loaded.
        Raises CommandError.
        """
        found = self.find(name)
        restore_backup.must_fit(self.target, found, foreign=False)

        def stop() -> None:
            stop_service()
            if restore_backup.undone_by(self.target, found) is not None:
                raise errors.CommandError(
                    "a shop was set up meanwhile: stop the service, and call `cardsync restore`"
                )

        self.restore(found, fresh=True, stop_service=stop)

    def restore(
        self, found: Backup, *, fresh: bool, stop_service: Callable[[], None] = lambda: None
    ) -> str:
        """Put a backup in the place of the present database; return the old one's new name. A fresh
        installation takes the backup's secret, too. `stop_service` is called before the switch.
        """
        with self._restored(found) as name:
            stop_service()
            restore_backup.put_back_objects(self.target, found)
            old = restore_backup.switch(self.target, name)
        if self._secret is not None:
            # What the backup holds is sealed with its secret.
            target = self._secret if fresh else former_file(self._settings)
            restore_backup.put_back_secret(found, target)
        keep_seal(self._owner, seal(self._settings))
        # The restored reports end before the backup; the newest one is known all the same.
        newest = next(iter(backup_folder.listed(self._folder)), found)
        at = newest.manifest.made_at
        backup_reports.record(self._owner, "backup", newest.name, at, at, None, newest.bytes)
        return old

    @contextmanager
    def _restored(self, found: Backup) -> Iterator[str]:
        """Yield the name of a fresh database that holds the backup and was checked."""
        with ExitStack() as stack:
            dump = found
            if found.manifest.kind == backup_folder.BASE:
                self._say("putting the database's files together …")
                scratch = self._settings.data_dir / "restoring"
                made = base_backup.as_dump(
                    found, self._tools, scratch, self._run_copy, self._dump_of
                )
                dump = stack.enter_context(made)
            restored = restore_backup.restored(self.target, dump, self._say, self._check)
            yield stack.enter_context(restored)

    def _dump_of(self, url: str, folder: Path) -> Manifest:
        database = make_conninfo(url, dbname=self.target.database)
        return take_backup.dump_into(database, self._tools, folder, self._say)

    def _taken(self) -> Backup:
        url = self._settings.backup_database_url or self._owner
        base_url = self._owner if self._settings.backup_kind == "base" else None
        source = Source(url, self._objects, self._secret, self._tools, base_url)
        made = take_backup.take(source, self._folder, self._say, self._killed)
        if self._bucket:
            self._say(f"copying it to {self._bucket.url} …")
            self._bucket.push(made)
        return made

    def _killed(self, name: str) -> None:
        """Record a backup that could not record its own end."""
        began_at = backup_folder.moment_of(name) or clock.now()
        why = "it was stopped before its end"
        backup_reports.record(self._owner, "backup", name, began_at, clock.now(), why)

    def _prune(self) -> None:
        found = backup_folder.listed(self._folder)
        here = {one.name for one in found}
        keep = _kept(here, found)
        for one in found:
            if one.name not in keep:
                backup_folder.drop(one)
        if self._bucket:
            away = set(self._bucket.names())
            self._bucket.drop(away - _kept(away, found))

    def _recorded(self, kind: Literal["backup", "rehearsal"], work: Callable[[], Backup]) -> Backup:
        """Do the work, and record how it ended."""
        began_at = clock.now()
        try:
            done = work()
        except UnderWay:
            raise
        except (errors.CommandError, RuntimeError, OSError) as e:
            why = str(e)[:1000]
            backup_reports.record(self._owner, kind, "", began_at, clock.now(), why)
            raise
        backup_reports.record(self._owner, kind, done.name, began_at, clock.now(), None, done.bytes)
        return done


def _kept(names: set[str], found: list[Backup]) -> set[str]:
    """Return which of these backups to keep, with those that they build on."""
    times = {name: at for name in names if (at := backup_folder.moment_of(name))}
    keep = backup_schedule.kept(times.values())
    kept = {name for name, at in times.items() if at in keep}
    return kept | base_backup.needed(kept, found)
