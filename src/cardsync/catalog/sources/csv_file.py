"""Reads CSV files of any size in chunks, each value as its text. Compressed files (.gz, .xz) are
supported.

Polars reads a chunk whose rows are one line each. Any other chunk is read row by row, so that a
broken quote makes only its own row unreadable. Reading stops early with an error if the file is not
a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.source_record import Broken, CatalogError
from cardsync.platform.table_text import (
    Form,
    NotATable,
    Row,
    lines_of,
    read_rows,
    refuse_other_kinds,
)
from cardsync.platform.value_types import JsonObject

ROW_BYTES: Final = 1_000_000
_HEADER_BYTES: Final = 1 << 16
_PIECE: Final = 1 << 23
_ROWS_AT_ONCE: Final = 20_000
_MARK: Final = b"\xef\xbb\xbf"
_QUOTE, _BREAK = ord('"'), ord("\n")
# The name of the column with the numbers of the rows in the file.
ROW: Final = "(row)"
Frames = Iterator[tuple[pl.DataFrame, list[Broken]]]


def columns(path: Path) -> list[str]:
    """Return the names in the first line. Raises CatalogError."""
    return _plainly(path, _header(path, json_file.head(path, _HEADER_BYTES))).columns


def frames(path: Path) -> Frames:
    """Yield the rows, some at a time, with the column `ROW`, and the broken rows. Raises
    CatalogError.
    """
    with json_file.opened(path) as file:
        text = file.read(_HEADER_BYTES)
        header = _header(path, text)
        names = _plainly(path, header).columns
        text, first = text.removeprefix(_MARK)[len(header) :], 1
        for piece in _pieces(path, file, text):
            for rows, broken in _parsed(header, piece, names, first):
                first += rows.height + len(broken)
                yield rows, broken


def rows(path: Path) -> Iterator[JsonObject | Broken]:
    """Yield each row. Raises CatalogError."""
    for frame, broken in frames(path):
        yield from frame.drop(ROW).iter_rows(named=True)
        yield from broken


def _pieces(path: Path, file: Any, text: bytes) -> Iterator[bytes]:
    """Yield the text in chunks of whole rows."""
    while piece := file.read(_PIECE):
        text += piece
        end = _end_of_rows(text)
        if len(text) - end > ROW_BYTES:
            # A quote is not closed. The chunk ends after the last line, so only one row is broken.
            end = text.rfind(b"\n") + 1
        if end:
            yield text[:end]
            text = text[end:]
        if len(text) > ROW_BYTES:
            raise CatalogError(
                f"{path.name} has a row of more than {ROW_BYTES / 1e6:.0f} MB: it is no table"
            )
    yield text


def _header(path: Path, head: bytes) -> bytes:
    """Return the first line without the byte-order mark."""
    try:
        refuse_other_kinds(head)
    except NotATable as e:
        raise CatalogError(f"{path.name} is no CSV: {e}") from e
    end = head.find(b"\n") + 1
    if not end and len(head) >= _HEADER_BYTES:
        raise CatalogError(f"{path.name} has no line of names at its beginning: it is no table")
    return (head[:end] if end else head + b"\n").removeprefix(_MARK)


def _places(text: bytes) -> tuple[Any, Any]:
    """Return the positions of the line breaks, and the number of quotes before each."""
    found = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero(found == _BREAK)
    return breaks, np.searchsorted(np.flatnonzero(found == _QUOTE), breaks)


def _end_of_rows(text: bytes) -> int:
    """Return the end of the last row in which all quotes are closed."""
    breaks, quotes = _places(text)
    closed = breaks[quotes % 2 == 0]
    return int(closed[-1]) + 1 if closed.size else 0


def _parsed(header: bytes, piece: bytes, names: list[str], first: int) -> Frames:
    if not (_places(piece)[1] % 2).any():
        with suppress(pl.exceptions.PolarsError):
            found = pl.read_csv(header + piece, infer_schema=False)
            yield found.with_row_index(ROW, first), []
            return
    lines, _ = lines_of(header + piece)
    rows = enumerate(read_rows(lines, Form(), len(names), 1), first)
    while some := [*islice(rows, _ROWS_AT_ONCE)]:
        yield frame_of_rows(names, some)


def frame_of_rows(
    names: Sequence[str], found: Sequence[tuple[int, Row]]
) -> tuple[pl.DataFrame, list[Broken]]:
    """Return the readable rows with their numbers, and the broken rows."""
    good = [(at, row.cells) for at, row in found if not row.fault]
    # If a header has a name twice, the first column has the name, and others get a number.
    own = [name if names.index(name) == at else f"{name} {at}" for at, name in enumerate(names)]
    told = pl.DataFrame([cells for _, cells in good], dict.fromkeys(own, pl.String), orient="row")
    numbers = pl.Series(ROW, [at for at, _ in good], pl.UInt32)
    broken = [Broken(f"row {at:,}", row.fault) for at, row in found if row.fault]
    return told.insert_column(0, numbers), broken


def _plainly(path: Path, header: bytes) -> pl.DataFrame:
    try:
        return pl.read_csv(header, infer_schema=False)
    except pl.exceptions.PolarsError as e:
        raise CatalogError(f"{path.name} cannot be read as csv: {e}") from e
