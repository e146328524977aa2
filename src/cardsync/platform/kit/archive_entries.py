"""Writes the entries of an archive: a zip whose `manifest.json` names the bytes and the SHA-256 of
each file.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

import msgspec

MANIFEST: Final = "manifest.json"
# All entries have the earliest time of the zip format.
_MOMENT: Final = (1980, 1, 1, 0, 0, 0)


class FileLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file's size in bytes, SHA-256 in hexadecimal, and the rows of a table."""

    bytes: int
    sha256: str
    rows: int = 0


class CountedFile:
    """A file that is hashed while it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hashed, self._size = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        self._hashed.update(data)
        self._size += len(data)
        self._file.write(data)

    def line(self, rows: int = 0) -> FileLine:
        return FileLine(self._size, self._hashed.hexdigest(), rows)


class EntryWriter:
    """Writes the entries of an archive; `lines` are the manifest's lines."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self.lines = dict[str, FileLine]()

    @contextmanager
    def packed(self, entry: str) -> Iterator[CountedFile]:
        """Open an entry that is compressed by the method of the zip file."""
        with self._file.open(entry, "w", force_zip64=True) as opened:
            yield (file := CountedFile(opened))
        self.lines[entry] = file.line()

    def add(self, entry: str, chunks: Iterable[bytes], rows: int = 0) -> FileLine:
        """Add an entry uncompressed: Parquet, receipts and pictures are compressed already."""
        info = zipfile.ZipInfo(entry, _MOMENT)
        with self._file.open(info, "w", force_zip64=True) as opened:
            file = CountedFile(opened)
            for chunk in chunks:
                file.write(chunk)
        line = self.lines[entry] = file.line(rows)
        return line

    def end(self, manifest: Any) -> None:
        self.add(MANIFEST, [msgspec.json.format(msgspec.json.encode(manifest))])
