"""Makes a backup: one snapshot of the database and the objects of that moment, in a folder.

The backup is written under another name and renamed when it is complete and on the disk. Rows are
counted in the dumped snapshot, so that a restored database can be compared with them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import psycopg
from psycopg import sql

from cardsync import __version__
from cardsync.operations import base_backup, cluster_checks, pg_tools
from cardsync.operations.base_backup import BaseFiles
from cardsync.platform import clock, errors
from cardsync.platform.backups import backup_folder
from cardsync.platform.backups.backup_folder import Backup, Kind, Manifest
from cardsync.platform.database.locks import Lock, locked_by_connection
from cardsync.platform.database.urls import BACKUP_ROLE, connect, libpq_url
from cardsync.platform.kit.archive_entries import FileLine

# The prefixes of objects that are not data yet: unclaimed uploads, catalogs that wait for a worker,
# and bodies that are being received.
_PASSING: Final = ("incoming", "syncs", "catalogs", "health")
Say = Callable[[str], None]


class UnderWay(errors.CommandError):
    """Another process is doing the same work; nothing has failed."""


@dataclass(frozen=True)
class Source:
    """The sources of a backup: a database by the URL of its owner or of the backup role, the folder
    of the local objects (None if they are in a bucket), and the file of the secret. For a base
    backup `base_url` is the owner's URL.
    """

    database_url: str
    objects: Path | None
    secret: Path | None
    tools: Path
    base_url: str | None = None


def take(source: Source, folder: Path, say: Say, killed: Callable[[str], None]) -> Backup:
    """Make a backup in `folder`. Raises CommandError, and then leaves nothing behind. `killed` is
    called with the name of each earlier backup that was stopped before its end.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    url = libpq_url(source.database_url, role=BACKUP_ROLE)
    with _as_sentence(), connect(url, role=BACKUP_ROLE) as connection:
        if cluster_checks.is_spread(connection):
            raise errors.CommandError(cluster_checks.BACK_UP_NODES)
        if not locked_by_connection(connection, Lock.BACKUP):
            raise UnderWay("another backup is under way: wait until it ends")
        for left in backup_folder.drop_partial(folder):
            killed(left)
        made_at = clock.now().replace(microsecond=0)
        partial = folder / f"{backup_folder.PARTIAL}{backup_folder.name_of(made_at)}"
        partial.mkdir(mode=0o700)
        try:
            manifest = _written(source, connection, url, partial, made_at, folder, say)
            return _whole(partial, manifest, folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def dump_into(url: str, tools: Path, folder: Path, say: Say) -> Manifest:
    """Dump a database without objects into a folder. Raises CommandError."""
    url = libpq_url(url, role=BACKUP_ROLE)
    with _as_sentence(), connect(url, role=BACKUP_ROLE) as connection:
        source = Source(url, None, None, tools)
        return _written(source, connection, url, folder, clock.now(), folder, say)


def _written(
    source: Source,
    connection: psycopg.Connection,
    url: str,
    partial: Path,
    made_at: datetime,
    folder: Path,
    say: Say,
) -> Manifest:
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        if source.base_url is None:
            say("dumping the database …")
            _dump(source.tools, connection, url, partial)
        tables = row_counts(connection)
        seals = seal_digests(connection)
        revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert revision is not None
    made = BaseFiles(None, {})
    if source.base_url is not None:
        say("copying the database's files …")
        made = base_backup.copy(source.base_url, source.tools, partial, folder)
    # The objects are listed after the snapshot: an object is stored before the row that names it.
    say("collecting the objects …")
    lines = _linked_objects(source.objects, partial, folder)
    listing = partial / backup_folder.OBJECT_LIST
    listing.write_bytes(msgspec.json.encode(lines))
    kind: Kind = "dump" if source.base_url is None else "base"
    return Manifest(
        made_at=made_at,
        program=__version__,
        revision=revision[0],
        server=connection.info.server_version // 10_000,
        seals=seals,
        tables=tables,
        kind=kind,
        parent=made.parent,
        base_files=made.files,
        database=backup_folder.digest(partial / backup_folder.database_file(kind)),
        objects=backup_folder.digest(listing),
        object_bytes=sum(line.bytes for line in lines.values()),
        object_count=len(lines),
        secret=_copied_secret(source.secret, partial),
    )


def _dump(tools: Path, connection: psycopg.Connection, url: str, partial: Path) -> None:
    """Dump the snapshot of the connection's transaction."""
    exported = connection.execute("SELECT pg_export_snapshot()").fetchone()
    assert exported is not None
    # The fastest level of gzip: the default takes three times as long to save a tenth.
    options = ("--format=custom", "--compress=1", f"--snapshot={exported[0]}")
    pg_tools.run(tools / "pg_dump", url, *options, f"--file={partial / backup_folder.DUMP}")


def row_counts(connection: psycopg.Connection) -> dict[str, int]:
    """Return the row count of each table; partitions are counted separately."""
    tables = connection.execute("""
        SELECT c.relname FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
           AND c.relpersistence = 'p' ORDER BY 1
    """).fetchall()
    counts = {}
    for (name,) in tables:
        counted = connection.execute(
            sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("public", name))
        ).fetchone()
        assert counted is not None
        counts[name] = counted[0]
    return counts


def seal_digests(connection: psycopg.Connection) -> list[str]:
    """Return digests of the installation's seals, by which it recognizes its own backups."""
    seals = connection.execute("SELECT seal FROM identity_seal").fetchall()
    return sorted(hashlib.sha256(bytes(seal)).hexdigest() for (seal,) in seals)


def _linked_objects(objects: Path | None, partial: Path, folder: Path) -> dict[str, FileLine]:
    """Link each object into the backup. Objects never change in place, so a link is a copy; objects
    that the newest backup has hashed are not read again.
    """
    if objects is None or not objects.is_dir():
        return {}
    earlier = next(iter(backup_folder.listed(folder)), None)
    known = backup_folder.object_lines(earlier) if earlier else {}
    lines = {}
    for path in sorted(objects.rglob("*")):
        key = path.relative_to(objects).as_posix()
        if key.partition("/")[0] in _PASSING or not path.is_file():
            continue
        target = partial / backup_folder.OBJECTS / key
        target.parent.mkdir(parents=True, exist_ok=True)
        # The object may have expired and been deleted in the meantime.
        with suppress(FileNotFoundError):
            line = known.get(key)
            before = earlier.path / backup_folder.OBJECTS / key if earlier and line else None
            if before is None or not _is_same(path, before):
                link_or_copy(path, target)
                line = None
            else:
                link_or_copy(before, target)
            lines[key] = line or backup_folder.digest(target)
    return lines


def _is_same(one: Path, other: Path) -> bool:
    """Return whether the two paths are the same file, or a file and its copy on another disk."""
    if not other.exists():
        return False
    here, there = one.stat(), other.stat()
    return one.samefile(other) or (here.st_size, here.st_mtime_ns) == (
        there.st_size,
        there.st_mtime_ns,
    )


def link_or_copy(source: Path, target: Path) -> None:
    """Link the file `source` as `target`, or copy it if `target` is on another disk. `target` is
    then either complete or absent.
    """
    try:
        os.link(source, target)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError:
        draft = target.with_name(f".{target.name}-copied")
        shutil.copy2(source, draft)
        _sync(draft)
        draft.replace(target)


def _copied_secret(secret: Path | None, partial: Path) -> FileLine | None:
    if secret is None or not secret.exists():
        return None
    target = partial / backup_folder.SECRET
    shutil.copyfile(secret, target)
    target.chmod(0o600)
    return backup_folder.digest(target)


def _whole(partial: Path, manifest: Manifest, folder: Path) -> Backup:
    """Rename the backup to its final name, once all of it is on the disk."""
    (partial / backup_folder.MANIFEST).write_bytes(
        msgspec.json.format(msgspec.json.encode(manifest))
    )
    for path in (*partial.glob("*.*"), partial):
        _sync(path)
    whole = folder / backup_folder.name_of(manifest.made_at)
    partial.rename(whole)
    _sync(folder)
    return Backup(whole, manifest)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _as_sentence() -> Iterator[None]:
    """Convert an error of a database or a disk into one sentence."""
    try:
        yield
    except psycopg.Error as e:
        words = " ".join(str(e).split())
        raise errors.CommandError(f"the database cannot be backed up: {words}") from e
    except OSError as e:
        raise errors.CommandError(f"the backup cannot be written: {e}") from e
