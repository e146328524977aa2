"""Copies the files of the embedded database: all of them once a week, and otherwise the changes
since the previous backup. This kind of backup is for databases that are too large for a daily dump.

A restore combines the copies, runs them on a second server, and dumps the database there; then the
restore continues as from any dump.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from cardsync.operations import pg_tools
from cardsync.platform import clock, errors
from cardsync.platform.backups import backup_folder
from cardsync.platform.backups.backup_folder import (
    BASE,
    BASE_LIST,
    OBJECT_LIST,
    OBJECTS,
    SECRET,
    Backup,
    Manifest,
)
from cardsync.platform.database.urls import connect, libpq_url
from cardsync.platform.kit.archive_entries import FileLine

# Shorter than a week, since the hour of a day's backup varies.
_WHOLE_EVERY: Final = timedelta(days=6, hours=12)
_FIRST_VERSION: Final = 17
# Each archive, and the folder of its files in the cluster.
_ARCHIVES: Final = {"base.tar.gz": "", "pg_wal.tar.gz": "pg_wal"}
# Runs the cluster that the passed function writes into a folder; yields the URL of the cluster's
# superuser.
RunCopy = Callable[[Callable[[Path], None]], AbstractContextManager[str]]


class BaseFiles(NamedTuple):
    """The archives, and the backup on which the archives build (None if the archives are
    complete).
    """

    parent: str | None
    files: dict[str, FileLine]


def copy(owner_url: str, tools: Path, partial: Path, folder: Path) -> BaseFiles:
    """Copy the database's files into `partial`, for a backup in `folder`. Raises CommandError."""
    url = libpq_url(owner_url, role=None)
    _must_be_able(url)
    earlier = _base_of_next(backup_folder.listed(folder))
    program, target = tools / "pg_basebackup", partial / BASE
    options = [f"--pgdata={target}", "--format=tar", "--compress=gzip:1", "--checkpoint=fast"]
    if earlier is not None:
        try:
            pg_tools.run(program, url, *options, f"--incremental={earlier.path / BASE_LIST}")
        except errors.CommandError:
            # The server has no summaries from so long ago, or a restore has replaced the cluster.
            shutil.rmtree(target, ignore_errors=True)
            earlier = None
    if earlier is None:
        pg_tools.run(program, url, *options)
    files = {f"{BASE}/{name}": backup_folder.digest(partial / BASE / name) for name in _ARCHIVES}
    return BaseFiles(earlier.name if earlier else None, files)


def _base_of_next(found: list[Backup]) -> Backup | None:
    """Return the backup on which the next backup builds: the newest base backup, or None if its
    chain begins with a complete backup that is a week old. `found` must be newest first.
    """
    newest = next((one for one in found if one.manifest.kind == BASE), None)
    if newest is None:
        return None
    try:
        whole = chain(newest)[0]
    except errors.CommandError:
        return None
    is_new = clock.now() - whole.manifest.made_at < _WHOLE_EVERY
    return newest if is_new else None


def chain(backup: Backup) -> list[Backup]:
    """Return the backups on which this backup builds, the complete backup first, and this backup
    last. Raises CommandError if a backup is missing.
    """
    found = [backup]
    while (name := found[0].manifest.parent) is not None:
        found.insert(0, backup_folder.read(backup.path.parent / name))
    return found


def needed(kept: set[str], parents: Mapping[str, str | None]) -> set[str]:
    """Return the names of the backups on which the backups in `kept` build."""
    needed: set[str] = set()
    for name in kept:
        while (parent := parents.get(name)) is not None:
            needed.add(parent)
            name = parent
    return needed


def check(backup: Backup, *, objects_too: bool = True) -> None:
    """Raise CommandError unless every file of the backup, and of the backups on which it builds, is
    unchanged since it was written.
    """
    for one in chain(backup):
        backup_folder.check(one, objects_too=objects_too and one == backup)


@contextmanager
def as_dump(
    backup: Backup,
    tools: Path,
    scratch: Path,
    run_copy: RunCopy,
    dump: Callable[[str, Path], Manifest],
) -> Iterator[Backup]:
    """Yield the backup as a dump, in a folder in `scratch`. Raises CommandError."""
    shutil.rmtree(scratch, ignore_errors=True)

    def put_together(cluster: Path) -> None:
        folders = [_unpacked(one, scratch) for one in chain(backup)]
        pg_tools.run(tools / "pg_combinebackup", None, f"--output={cluster}", *folders)
        for unpacked in folders:
            shutil.rmtree(unpacked)

    folder = scratch / backup.name
    folder.mkdir(parents=True, mode=0o700)
    try:
        with run_copy(put_together) as url:
            dumped = dump(url, folder)
        for name in (OBJECTS, OBJECT_LIST, SECRET):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to((backup.path / name).absolute())
        same = ("objects", "object_bytes", "object_count", "secret")
        given = {name: getattr(backup.manifest, name) for name in same}
        yield Backup(folder, msgspec.structs.replace(dumped, **given))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unpacked(backup: Backup, scratch: Path) -> str:
    """Unpack the archives of a backup; return the folder."""
    folder = scratch / f"{backup.name}-{BASE}"
    for name, place in _ARCHIVES.items():
        with tarfile.open(backup.path / BASE / name) as archive:
            archive.extractall(folder / place, filter="data")
    shutil.copy2(backup.path / BASE_LIST, folder)
    return str(folder)


def _must_be_able(url: str) -> None:
    """Make the server record changes from now on. Raises CommandError if the server cannot make
    incremental backups.
    """
    with connect(url, role=None, autocommit=True) as connection:
        version = connection.info.server_version // 10_000
        found = connection.execute(
            "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        if version < _FIRST_VERSION or found != (True,):
            raise errors.CommandError(
                "base backups are made of the embedded database alone: set BACKUP_KIND to dump, or"
                " use the tools of your server"
            )
        if connection.execute("SHOW summarize_wal").fetchone() != ("on",):
            connection.execute("ALTER SYSTEM SET summarize_wal = on")
            connection.execute("SELECT pg_reload_conf()")
