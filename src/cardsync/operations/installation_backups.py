"""Makes, keeps, rehearses and restores the backups of one installation, and records each result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Literal

from psycopg.conninfo import make_conninfo

from cardsync.operations import base_backup, pg_tools, restore_backup, take_backup
from cardsync.operations.backup_bucket import Bucket
from cardsync.operations.base_backup import RunCopy
from cardsync.operations.restore_backup import Check, Target
from cardsync.operations.take_backup import Say, Source, UnderWay
from cardsync.platform import clock, errors
from cardsync.platform.backups import backup_folder, backup_reports, backup_schedule
from cardsync.platform.backups.backup_folder import Backup, Manifest, has_shop
from cardsync.platform.database.migrate import keep_seal
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.secret import former_file, key_file, seal
from cardsync.platform.settings import Settings


class InstallationBackups:
    """The backups of an installation whose database runs. `installs` are folders of the bundled
    PostgreSQL programs. `check` examines a restored database. `run_copy` runs a copy of the
    database's files.
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
        """The target of a restore. Raises CommandError if the programs of PostgreSQL are missing."""
        return Target(self._owner, self._objects, self._tools)

    def find(self, name: str | None) -> Backup:
        """Return a backup of the folder, copied from the bucket if needed; without a name, the
        newest.
        """
        found = None
        if self._bucket and (name is None or backup_folder.moment_of(name)):
            here = [one for one in backup_folder.listed(self._folder) if has_shop(one.manifest)]
            wanted = name or self._newest_of(self._bucket)
            is_newer = name is not None or not here or wanted > here[0].name
            if wanted and is_newer and not self._is_here(wanted):
                found = self._pulled(self._bucket, wanted)
        found = found or backup_folder.find(self._folder, name)
        parent = found.manifest.parent
        # An earlier copy may have stopped between a backup and the backups on which it builds.
        while self._bucket and parent is not None:
            if not self._is_here(parent):
                self._pulled(self._bucket, parent)
            parent = backup_folder.read(self._folder / parent).manifest.parent
        return found

    @staticmethod
    def _newest_of(bucket: Bucket) -> str:
        useful = (name for name, one in bucket.manifests().items() if has_shop(one))
        return max(useful, default="")

    def _is_here(self, name: str) -> bool:
        return (self._folder / name / backup_folder.MANIFEST).exists()

    def _pulled(self, bucket: Bucket, name: str) -> Backup:
        self._say(f"copying {name} from {bucket.url} …")
        return bucket.pull(name, self._folder)

    def take(self) -> Backup:
        """Make a backup now, and delete the backups that are no longer kept. Raises
        CommandError.
        """
        made = self._recorded("backup", self._taken)
        self._prune()
        return made

    def rehearse(self, name: str | None) -> Backup:
        """Test a backup by restoring it. Raises CommandError."""

        def rehearsed() -> Backup:
            found = self.find(name)
            with self._restored(found):
                return found

        return self._recorded("rehearsal", rehearsed)

    def daily(self) -> Backup | None:
        """Make the day's backup if it is due, and rehearse it."""
        made_at = backup_folder.newest(self._folder)
        failed_at = backup_reports.last_failure(self._owner)
        if not backup_schedule.is_due(clock.now(), made_at, failed_at):
            return None
        return self.rehearse(self.take().name)

    def restore_first(self, name: str, stop_service: Callable[[], None]) -> None:
        """Restore a backup in an installation without a shop. Raises CommandError if a shop is made
        before the switch. Raises CommandError.
        """
        found = self.find(name)
        restore_backup.must_fit(self.target, found, foreign=False)

        def stop() -> None:
            stop_service()
            if restore_backup.undone_by(self.target, found) is not None:
                raise errors.CommandError(
                    "a shop was set up in the meantime: stop the service, and call"
                    " `cardsync restore`"
                )

        self.restore(found, fresh=True, stop_service=stop)

    def restore(
        self,
        found: Backup,
        *,
        fresh: bool,
        damaged: bool = False,
        stop_service: Callable[[], None] = lambda: None,
    ) -> str:
        """Replace the current database by a backup; return the old database's new name. A fresh
        installation takes the backup's secret, too. With `damaged`, objects that the backup has
        lost do not stop the restore. `stop_service` is called before the switch.
        """
        with self._restored(found, damaged=damaged) as name:
            stop_service()
            restore_backup.restore_objects(self.target, found)
            if self._secret is not None:
                # The backup's values are sealed with its secret. The secret is stored before the
                # switch, so that a kill between both loses nothing.
                restore_backup.restore_secret(found, former_file(self._settings))
            old = restore_backup.switch(self.target, name)
        if (
            fresh
            and self._secret is not None
            and restore_backup.restore_secret(found, self._secret)
        ):
            former_file(self._settings).unlink(missing_ok=True)
        keep_seal(self._owner, seal(self._settings))
        # The restored database lacks the report of the backup itself and all later reports, so the
        # newest backup is recorded again.
        newest = next(iter(backup_folder.listed(self._folder)), found)
        at = newest.manifest.made_at
        backup_reports.record(self._owner, "backup", newest.name, at, at, None, newest.bytes)
        return old

    @contextmanager
    def _restored(self, found: Backup, *, damaged: bool = False) -> Iterator[str]:
        """Yield the name of a fresh database that contains the backup and was checked."""
        with ExitStack() as stack:
            stack.enter_context(restore_backup.alone(self.target))
            base_backup.check(found, objects_too=not damaged)
            dump = found
            if found.manifest.kind == backup_folder.BASE:
                self._say("putting the database's files together …")
                scratch = self._settings.data_dir / "restoring"
                made = base_backup.as_dump(
                    found, self._tools, scratch, self._run_copy, self._dump_of
                )
                dump = stack.enter_context(made)
            check = self._lenient if damaged else self._check
            restored = restore_backup.restored(self.target, dump, self._say, check)
            yield stack.enter_context(restored)

    def _lenient(self, url: str, objects: Path) -> None:
        if fault := self._check(url, objects):
            self._say(f"going on, although {fault}")

    def _dump_of(self, url: str, folder: Path) -> Manifest:
        database = make_conninfo(url, dbname=self.target.database)
        return take_backup.dump_into(database, self._tools, folder, self._say)

    def _taken(self) -> Backup:
        url = self._settings.backup_database_url or self._owner
        base_url = self._owner if self._settings.backup_kind == "base" else None
        source = Source(url, self._objects, self._secret, self._tools, base_url)
        made = take_backup.take(source, self._folder, self._say, self._killed)
        if self._bucket:
            away = set(self._bucket.names())
            # A backup may be missing in the bucket, because its copy failed or the bucket is new.
            for one in base_backup.chain(made):
                if one.name not in away:
                    self._say(f"copying {one.name} to {self._bucket.url} …")
                    self._bucket.push(one)
        return made

    def _killed(self, name: str) -> None:
        """Record a backup that was killed before it could record its own end."""
        began_at = backup_folder.moment_of(name) or clock.now()
        why = "it was stopped before its end"
        backup_reports.record(self._owner, "backup", name, began_at, clock.now(), why)

    def _prune(self) -> None:
        found = {one.name: one for one in backup_folder.listed(self._folder)}
        keep = _kept({name: one.manifest.parent for name, one in found.items()})
        for name in found.keys() - keep:
            backup_folder.drop(found[name])
        if self._bucket:
            away = {name: one.parent for name, one in self._bucket.manifests().items()}
            self._bucket.drop(away.keys() - _kept(away))

    def _recorded(self, kind: Literal["backup", "rehearsal"], work: Callable[[], Backup]) -> Backup:
        """Do the work, and record its result."""
        began_at = clock.now()
        try:
            done = work()
        except UnderWay:
            raise
        except Exception as e:
            why = str(e)[:1000]
            backup_reports.record(self._owner, kind, "", began_at, clock.now(), why)
            raise
        backup_reports.record(self._owner, kind, done.name, began_at, clock.now(), None, done.bytes)
        return done


def _kept(parents: Mapping[str, str | None]) -> set[str]:
    """Return the names of the backups to keep, and of the backups on which they build. `parents`
    maps a backup's name to the backup on which it builds.
    """
    times = {name: at for name in parents if (at := backup_folder.moment_of(name))}
    keep = backup_schedule.kept(times.values())
    kept = {name for name, at in times.items() if at in keep}
    return kept | base_backup.needed(kept, parents)
