"""Names, describes, lists and checks the backups in a folder.

A backup is a folder named by its time. The folder contains `database.dump` (pg_dump's custom
format) or `base/` (the cluster's files, or their changes), `objects/` with `objects.json`, which
lists each object's size and SHA-256, `secret.key` if DATA_DIR has one, and `manifest.json`, which
is written last. A folder without a manifest is not a backup.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from cardsync.platform import errors
from cardsync.platform.kit.archive_entries import FileLine

FORMAT: Final = 1
DUMP, OBJECTS, OBJECT_LIST = "database.dump", "objects", "objects.json"
# The archives of a base backup, and PostgreSQL's own list of their files.
BASE, BASE_LIST = "base", "base/backup_manifest"
MANIFEST, SECRET = "manifest.json", "secret.key"
PARTIAL: Final = ".partial-"
_NAMED: Final = "%Y-%m-%dT%H%M%SZ"
_CHUNK: Final = 1 << 20


Kind = Literal["dump", "base"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`tables` has the row count of each table. `seals` are digests of the installation's seals.
    `revision` is the schema's revision. `database` describes the dump, or a base backup's list of
    files by PostgreSQL; `base_files` describes a base backup's archives. A base backup contains the
    changes since its `parent`, or all files if `parent` is null.
    """

    format: int = FORMAT
    made_at: datetime
    program: str
    revision: str
    server: int
    seals: list[str]
    tables: dict[str, int]
    database: FileLine
    objects: FileLine
    object_bytes: int
    object_count: int
    secret: FileLine | None = None
    kind: Kind = "dump"
    parent: str | None = None
    base_files: dict[str, FileLine] = {}


@dataclass(frozen=True)
class Backup:
    """A complete backup and its path."""

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def bytes(self) -> int:
        """Bytes on the disk, without objects that other backups share."""
        manifest = self.manifest
        base = sum(line.bytes for line in manifest.base_files.values())
        return manifest.database.bytes + base + manifest.object_bytes


def database_file(kind: Kind) -> str:
    """Return the file that the manifest's `database` describes."""
    return BASE_LIST if kind == "base" else DUMP


def name_of(made_at: datetime) -> str:
    return made_at.astimezone(UTC).strftime(_NAMED)


def moment_of(name: str) -> datetime | None:
    """Return the time in a backup's name. Return None for any other name."""
    try:
        return datetime.strptime(name, _NAMED).replace(tzinfo=UTC)
    except ValueError:
        return None


def read(path: Path) -> Backup:
    """Return the backup in a folder. Raises CommandError if there is none."""
    try:
        text = (path / MANIFEST).read_bytes()
    except OSError:
        raise errors.CommandError(
            f"{path} is not a backup of cardsync: it has no {MANIFEST}"
        ) from None
    return Backup(path, read_manifest(text, path))


def read_manifest(text: bytes, of: Path | str) -> Manifest:
    """Decode a manifest. Raises CommandError if the text is unreadable."""
    try:
        return msgspec.json.decode(text, type=Manifest)
    except msgspec.MsgspecError as e:
        raise errors.CommandError(f"{of}/{MANIFEST} cannot be read: {e}") from None


def listed(folder: Path) -> list[Backup]:
    """Return the complete backups in a folder, newest first. A backup with an unreadable manifest
    is left out; `unreadable` names it.
    """
    return [one for one in _each(folder) if isinstance(one, Backup)]


def unreadable(folder: Path) -> list[str]:
    """Return why backups in a folder cannot be read, one sentence each."""
    return [one for one in _each(folder) if isinstance(one, str)]


def _each(folder: Path) -> Iterator[Backup | str]:
    if not folder.is_dir():
        return
    for path in sorted((one for one in folder.iterdir() if moment_of(one.name)), reverse=True):
        if (path / MANIFEST).exists():
            try:
                yield read(path)
            except errors.CommandError as e:
                yield str(e)


def newest(folder: Path) -> datetime | None:
    """Return the time of the newest complete backup, without reading it. Return None if there is no
    backup.
    """
    times = [moment_of(path.parent.name) for path in folder.glob(f"*/{MANIFEST}")]
    return max((at for at in times if at), default=None)


def find(folder: Path, name: str | None) -> Backup:
    """Return the backup with this name or path; without a name, the newest backup of a shop. Raises
    CommandError.
    """
    if name is None:
        if not (found := listed(folder)):
            raise errors.CommandError(f"there is no backup in {folder}: make one by `backup now`")
        return next((one for one in found if has_shop(one.manifest)), found[0])
    path = Path(name)
    return read(path if path.is_dir() and path.name != name else folder / name)


def has_shop(manifest: Manifest) -> bool:
    """Return whether the backup contains a seller."""
    return manifest.tables.get("seller", 0) > 0


def digest(path: Path) -> FileLine:
    hashed = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hashed.update(chunk)
            size += len(chunk)
    return FileLine(size, hashed.hexdigest())


def object_lines(backup: Backup) -> dict[str, FileLine]:
    """Return the entries of `objects.json` by the objects' keys."""
    return msgspec.json.decode((backup.path / OBJECT_LIST).read_bytes(), type=dict[str, FileLine])


def faults(backup: Backup) -> Iterator[str]:
    """Yield the faults of a backup's files, without its objects. The check reads every file."""
    manifest = backup.manifest
    said = {database_file(manifest.kind): manifest.database, OBJECT_LIST: manifest.objects}
    said |= manifest.base_files
    if manifest.secret is not None:
        said[SECRET] = manifest.secret
    for name, line in said.items():
        if fault := _fault(backup.path / name, line):
            yield fault


def object_faults(backup: Backup) -> Iterator[str]:
    """Yield the faults of a backup's objects; its list of objects must be intact."""
    for key, line in object_lines(backup).items():
        if fault := _fault(backup.path / OBJECTS / key, line):
            yield fault


def _fault(path: Path, said: FileLine) -> str | None:
    try:
        found = digest(path)
    except OSError as e:
        return f"{path} cannot be read: {e.strerror}"
    if found.bytes != said.bytes:
        return f"{path} has {found.bytes:,} bytes instead of {said.bytes:,}"
    return None if found == said else f"{path} was changed since it was written"


def check(backup: Backup, *, objects_too: bool = True) -> None:
    """Raise CommandError if a backup differs from what was written."""
    _must_be_none(list(faults(backup)), "use another backup")
    if objects_too:
        to_do = "use another backup, or restore it with --without-damaged-objects"
        _must_be_none(list(object_faults(backup)), to_do)


def _must_be_none(broken: list[str], to_do: str) -> None:
    if broken:
        more = f" (and {len(broken) - 1:,} more)" if len(broken) > 1 else ""
        raise errors.CommandError(f"{broken[0]}{more}: {to_do}")


def drop_partial(folder: Path) -> list[str]:
    """Delete the remains of killed backups and return their names."""
    left = sorted(folder.glob(f"{PARTIAL}*"))
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return [path.name.removeprefix(PARTIAL) for path in left]


def drop(backup: Backup) -> None:
    """Delete a backup, the manifest first, so that a partly deleted folder is not a backup."""
    (backup.path / MANIFEST).unlink()
    shutil.rmtree(backup.path)
