"""Reads JSON files of any size, record by record. Compressed files (.gz, .xz) are read as
they are.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import ijson

from cardsync.catalog.sources.source_record import CatalogError


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, whatever it is compressed with. Raises CatalogError for one that is broken."""
    try:
        with _unpacked(path) as file:
            yield file
    except (ijson.JSONError, UnicodeDecodeError) as e:
        # The parser draws the place below its reason.
        reason = str(e).splitlines()[0]
        raise CatalogError(f"{path.name} is no whole JSON file: {reason}") from e
    except (OSError, EOFError, lzma.LZMAError) as e:
        raise CatalogError(f"{path.name} cannot be read: {e}") from e


def _unpacked(path: Path) -> BinaryIO:
    packed = path.suffix.lower()
    if packed == ".gz":
        return cast("BinaryIO", gzip.open(path, "rb"))
    return cast("BinaryIO", lzma.open(path, "rb")) if packed == ".xz" else path.open("rb")


def items(path: Path, *prefixes: str) -> Iterator[Any]:
    """Yield the values at the prefix that the file begins with: `item` is each element of a list,
    `data.item` each element of the list under `data`.
    """
    prefix = prefixes[0] if _begins_with(path, b"[") or len(prefixes) == 1 else prefixes[1]
    with opened(path) as file:
        yield from ijson.items(file, prefix, use_float=True)


def pairs(path: Path, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield each name and value of the object at the prefix."""
    with opened(path) as file:
        yield from ijson.kvitems(file, prefix, use_float=True)


def whole(path: Path) -> Any:
    """Return a small file's one value."""
    with opened(path) as file:
        return next(iter(ijson.items(file, "", use_float=True)))


def head(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file, unpacked."""
    with opened(path) as file:
        return file.read(size)


def _begins_with(path: Path, sign: bytes) -> bool:
    return head(path).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == sign
