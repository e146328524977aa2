"""Writes, checks and opens the archive of a seller: a zip of Parquet files, objects and
`manifest.json`.

The manifest lists each file's size and SHA-256. The last 64 characters of the file are the SHA-256
of everything before them, so that a reader detects any change, wherever it is.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from cardsync.operations.moving.archive_tables import Holds
from cardsync.platform import errors
from cardsync.platform.kit.archive_entries import MANIFEST, EntryWriter, FileLine

FORMAT: Final = 1
TABLES, OBJECTS = "tables", "objects"
_DIGEST: Final = 64
_CHUNK: Final = 1 << 20
_MANIFEST_MOST: Final = 1 << 29


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`revision` is the schema's. `tables` and `objects` describe the files by their names."""

    format: int = FORMAT
    made_at: datetime
    program: str
    revision: str
    holds: Holds
    seller_id: int
    name: str
    email: str
    created_at: datetime
    tables: dict[str, FileLine]
    objects: dict[str, FileLine]

    def rows(self, table: str) -> int:
        return self.tables[table].rows if table in self.tables else 0

    def sentence(self) -> str:
        """Describe the shop in one line for people."""
        size = sum(line.bytes for line in (*self.tables.values(), *self.objects.values()))
        return (
            f"{self.name}, {self.rows('card'):,} cards, {self.rows('orders'):,} orders,"
            f" {len(self.objects):,} objects, {size / 1e6:,.1f} MB"
        )


class _Form(msgspec.Struct):
    format: int


def table_entry(name: str) -> str:
    return f"{TABLES}/{name}.parquet"


@contextmanager
def written(path: Path) -> Iterator[EntryWriter]:
    """Write an archive to `path`, either completely or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        # Only the owner may read the archive.
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600), "w+b") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as file:
                yield EntryWriter(file)
            _sign(raw)
            raw.flush()
            os.fsync(raw.fileno())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def _sign(raw: BinaryIO) -> None:
    """Append the digest of everything before it, as the zip's comment."""
    raw.seek(-2, os.SEEK_END)
    raw.write(_DIGEST.to_bytes(2, "little"))
    digest = _sha256(raw, raw.seek(0, os.SEEK_END))
    raw.seek(0, os.SEEK_END)
    raw.write(digest.encode())


class Archive:
    """A complete archive and its manifest."""

    def __init__(self, file: zipfile.ZipFile, manifest: Manifest) -> None:
        self._file, self.manifest = file, manifest

    def chunks(self, entry: str) -> Iterator[bytes]:
        try:
            with self._file.open(entry) as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
        except zipfile.BadZipFile as e:
            raise errors.CommandError(f"{entry} cannot be read: {e}") from None


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open an archive that is unchanged since it was written. Raises CommandError for any other
    file.
    """
    with path.open("rb") as raw:
        _check_digest(path, raw)
        try:
            file = zipfile.ZipFile(raw)
            manifest = _manifest(file)
        except (zipfile.BadZipFile, KeyError, msgspec.MsgspecError, NotImplementedError):
            raise errors.CommandError(f"{path} is not an archive of a seller") from None
        _check_files(path, file, manifest)
        yield Archive(file, manifest)


def _check_digest(path: Path, raw: BinaryIO) -> None:
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(size - _DIGEST, 0))
    said = raw.read()
    if _sha256(raw, size - _DIGEST).encode() != said:
        raise errors.CommandError(
            f"{path} is not as `cardsync admin seller export` wrote it: copy it again"
        )


def _sha256(raw: BinaryIO, size: int) -> str:
    """Return the digest of the first `size` bytes."""
    hashed = hashlib.sha256()
    raw.seek(0)
    while size > 0 and (chunk := raw.read(min(_CHUNK, size))):
        hashed.update(chunk)
        size -= len(chunk)
    return hashed.hexdigest()


def _manifest(file: zipfile.ZipFile) -> Manifest:
    found = file.getinfo(MANIFEST)
    if found.file_size > _MANIFEST_MOST or found.compress_type != zipfile.ZIP_STORED:
        raise zipfile.BadZipFile
    said = file.read(found)
    form = msgspec.json.decode(said, type=_Form).format
    if form != FORMAT:
        raise errors.CommandError(
            f"the archive has format {form}, and this program reads format {FORMAT}:"
            " use the cardsync that wrote it, or a newer one"
        )
    return msgspec.json.decode(said, type=Manifest)


def _check_files(path: Path, file: zipfile.ZipFile, manifest: Manifest) -> None:
    """Check that the archive has exactly the files of its manifest. The digest proves only that
    nothing has changed since the archive was written.
    """
    said = {table_entry(name): line for name, line in manifest.tables.items()}
    said |= {f"{OBJECTS}/{key}": line for key, line in manifest.objects.items()}
    entries = [one for one in file.infolist() if one.filename != MANIFEST]
    found = {one.filename: one.file_size for one in entries}
    plain = all(
        one.compress_type == zipfile.ZIP_STORED and not one.flag_bits & 1 for one in entries
    )
    if not plain or len(found) < len(entries):
        raise errors.CommandError(f"{path} is not packed as an export packs it")
    if found != {entry: line.bytes for entry, line in said.items()}:
        raise errors.CommandError(f"{path} lacks files that its manifest names: export it again")
