"""Reads a CSV file, damaged or not, as records with their physical line numbers: each record's
cells, or its problem. Pure.

A quote that is never closed damages only its own line. A problem's text never quotes the line,
because any column of a damaged line may contain a name or a street.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cardsync_agent import table_text
from cardsync_agent.file_kinds import column
from cardsync_agent.table_text import (
    AS_EXPORTED,
    Form,
    IsHeader,
    NotATable,
    cells_of,
    form_of,
    read_rows,
)

GZIP_MAGIC = b"\x1f\x8b"


class Damaged(Exception):
    """The file as a whole cannot be read; the message is printed after the file's name."""


@dataclass(frozen=True)
class Problem:
    line: int
    text: str


@dataclass(frozen=True)
class Record:
    """`cells` maps column names to stripped texts; a column beyond the end of the row is blank.
    `decimal` is the decimal sign of the file.
    """

    line: int
    cells: dict[str, str] = field(repr=False)
    decimal: str = "."

    def get(self, name: str) -> str:
        return self.cells.get(name, "")


class Lines(list[str]):
    """The physical lines of a file, and the format of their table."""

    form = AS_EXPORTED


def lines_of(content: bytes, is_header: IsHeader | None = None) -> Lines:
    """Return physical lines of gzip or plain bytes. `is_header` finds the header of a file that a
    person may have saved again; without `is_header`, the file has the marketplace's own format.
    Raises Damaged.
    """
    try:
        plain, encoding = table_text.lines_of(inflated(content))
    except NotATable as e:
        raise Damaged(str(e).removeprefix("this ")) from None
    lines = Lines(plain)
    if is_header is not None and (form := form_of(plain, is_header, encoding)):
        lines.form = form
    return lines


def header_of(lines: Sequence[str]) -> list[str]:
    form = _form(lines)
    return [column(name) for name in cells_of(lines[form.before], form.delimiter)] if lines else []


def _form(lines: Sequence[str]) -> Form:
    return lines.form if isinstance(lines, Lines) else AS_EXPORTED


def records(
    lines: Sequence[str], fewest: int | None = None, *, strict: bool = False
) -> Iterator[Record | Problem]:
    """Yield each line after the header that is not blank, as a record or a problem. A record has
    all columns of the header, or at least `fewest`; if `strict`, a misplaced quote is a problem.
    """
    header, form = header_of(lines), _form(lines)
    for line, cells, fault in read_rows(lines, form, len(header), fewest, strict=strict):
        if fault or list(map(column, cells[: len(header)])) == header:
            yield Problem(line, fault or "the header again")
        else:
            stripped = (cell.strip() for cell in cells)
            yield Record(line, dict(zip(header, stripped, strict=False)), form.decimal)


def inflated(content: bytes) -> bytes:
    """Return the bytes, decompressed if they are gzip. Raises Damaged."""
    if content[:2] != GZIP_MAGIC:
        return content
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        plain = unpacking.decompress(content)
    except zlib.error:
        raise Damaged("is damaged gzip") from None
    if not unpacking.eof:
        raise Damaged("is gzip that stops in the middle")
    return plain
