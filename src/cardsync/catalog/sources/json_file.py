"""Reads JSON files of any size, record by record. Compressed files (.gz, .xz) are supported.

Reading stops with an error at a record that is larger than any record of a catalog.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import ijson

from cardsync.catalog.sources.source_record import CatalogError
from cardsync.platform.value_types import Json

# The maximum size of a record, or of the text between two records. A whole set of MTGJSON is one
# record. As Python objects, a record may be twenty times as large.
RECORD_BYTES: Final = 40_000_000
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, compressed or not. Raises CatalogError for a broken file."""
    try:
        with _unpacked(path) as file:
            yield file
    except (ijson.JSONError, UnicodeDecodeError) as e:
        # Only the first line of the parser's message is the reason.
        reason = str(e).splitlines()[0]
        raise CatalogError(f"{path.name} is no whole JSON file: {reason}") from e
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as e:
        raise CatalogError(f"{path.name} cannot be read: {e}") from e


def _unpacked(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        first = file.read(len(_XZ))
    if first.startswith(_GZIP):
        return cast("BinaryIO", gzip.open(path, "rb"))
    return cast("BinaryIO", lzma.open(path, "rb")) if first == _XZ else path.open("rb")


class _Bounded:
    """A file that raises CatalogError after too many bytes without a record."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self.renew()

    def renew(self) -> None:
        self._left = RECORD_BYTES

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise CatalogError(
                f"{self._name} has a record of more than {RECORD_BYTES / 1e6:.0f} MB, or none in so"
                " many: it is no catalog"
            )
        return data


def items(path: Path, *prefixes: str) -> Iterator[Json]:
    """Yield the values at a prefix: `item` is each element of a list, `data.item` each element of
    the list in the field `data`. Of two prefixes, the first is used if the file is a list.
    """
    with opened(path) as file:
        bounded = _Bounded(file, path.name)
        for one in ijson.items(bounded, _prefix(path, prefixes), use_float=True):
            yield one
            bounded.renew()


def few(path: Path, *prefixes: str) -> list[Json]:
    """Return the values at a prefix, for a file that is as small as a record, such as a list of
    sets.
    """
    with opened(path) as file:
        bounded = _Bounded(file, path.name)
        return [*ijson.items(bounded, _prefix(path, prefixes), use_float=True)]


def pairs(path: Path, prefix: str) -> Iterator[tuple[str, Json]]:
    """Yield each name and value of the object at the prefix."""
    with opened(path) as file:
        bounded = _Bounded(file, path.name)
        for one in ijson.kvitems(bounded, prefix, use_float=True):
            yield one
            bounded.renew()


def whole(path: Path) -> Json:
    """Return the one value of a small file."""
    return next(iter(few(path, "")))


def head(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with opened(path) as file:
        return file.read(size)


def _prefix(path: Path, prefixes: tuple[str, ...]) -> str:
    is_list = head(path).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
    return prefixes[0] if is_list or len(prefixes) == 1 else prefixes[1]
