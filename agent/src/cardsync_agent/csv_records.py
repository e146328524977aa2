"""Reads a CSV file, damaged or not, as records with their physical line numbers: each record's
cells, or its problem. Pure.

A quote that never closes spoils its own line, not those that follow. The description of a problem
never quotes the line: any column of a damaged one may hold a name or a street.
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

GZIP_MAGIC = b"\x1f\x8b"
MOST_LINES = 20  # of one record: comments may hold line breaks
MOST_CELL = 4_000


class Damaged(Exception):
    """The file as a whole cannot be read; the message follows its name."""


@dataclass(frozen=True)
class Problem:
    line: int
    text: str


@dataclass(frozen=True)
class Record:
    """`cells` are by column name, stripped; a column beyond the end of the row is blank."""

    line: int
    cells: dict[str, str] = field(repr=False)

    def get(self, name: str) -> str:
        return self.cells.get(name, "")


def column(name: str) -> str:
    """Return one name for `Order #`, `order_number` and `Order Number`, and one for `PostalCode`
    and `postal_code`.
    """
    return re.sub(r"[^a-z0-9]", "", name.casefold().replace("#", "number"))


def lines_of(content: bytes) -> list[str]:
    """Return physical lines of gzip or plain bytes, in UTF-8 or with stray Latin-1.

    Raises Damaged if the gzip is damaged.
    """
    if content[:2] == GZIP_MAGIC:
        content = _inflated(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\n".join(
            _decoded(line) for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        )
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def header_of(lines: list[str]) -> list[str]:
    try:
        return [column(name) for name in next(csv.reader(lines[:1]), [])]
    except csv.Error:
        return []


def records(
    lines: list[str], fewest: int | None = None, *, strict: bool = False
) -> Iterator[Record | Problem]:
    """Yield every line after the header that is not blank. Rows have the header's columns, or at
    least `fewest` of them; if `strict`, they also have no quote in a wrong place.
    """
    header = header_of(lines)
    fewest = len(header) if fewest is None else fewest
    at = 1
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        cells, used = _record_at(lines, at, strict)
        problem = _problem(cells, header, fewest)
        # Lines that together are no record come from a stray quote: only the first line is given
        # up.
        if problem:
            used = 1
            yield Problem(at + 1, problem)
        else:
            yield Record(at + 1, dict(zip(header, (cell.strip() for cell in cells), strict=False)))
        at += used


def _record_at(lines: list[str], at: int, strict: bool) -> tuple[list[str], int]:
    reader = csv.reader((f"{line}\n" for line in lines[at : at + MOST_LINES]), strict=True)
    try:
        return next(reader), reader.line_num
    except csv.Error:
        pass
    if strict:
        return [], 1
    try:  # a stray quote in the middle of a cell does no harm
        return next(csv.reader(lines[at : at + 1])), 1
    except csv.Error:
        return [], 1


def _problem(cells: list[str], header: list[str], fewest: int) -> str | None:
    if not cells:
        return "quotes that do not pair"
    if not fewest <= len(cells) <= len(header):
        return f"{len(cells)} columns where the header has {len(header)}"
    if column(cells[0]) == header[0] and [column(cell) for cell in cells] == header[: len(cells)]:
        return "the header again"
    if any("\0" in cell for cell in cells):
        return "a NUL byte in it"
    if any(len(cell) > MOST_CELL for cell in cells):
        return f"a cell of more than {MOST_CELL:,} characters"
    return None


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _inflated(content: bytes) -> bytes:
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        plain = unpacking.decompress(content)
    except zlib.error:
        raise Damaged("is damaged gzip") from None
    if not unpacking.eof:
        raise Damaged("is gzip that stops in the middle")
    return plain
