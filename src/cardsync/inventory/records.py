"""Splitting a pricing CSV into records: bytes in, a frame of text cells with physical line numbers and the lines that are none out.

The fast reader is believed only where it can't be wrong: one line a record, and every line that holds a stray quote or ends early
has the exact form of a record. Any other file is scrubbed line by line first. Pure.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from cardsync.errors import InvalidCsv
from cardsync.inventory.csv_format import Header

# A cell longer than this has swallowed other cells.
CELL_MAX = 4_000
_LINE_MAX = 64_000
_RECORD_LINES_MAX = 50
_STARTS_RECORD = re.compile(rb'\s*"?\d+"?\s*,')


@dataclass
class Records:
    """`cells`: one String column per header column (c0, c1, …) and `line`. `malformed`: (line, why) of what is no record."""

    cells: pl.DataFrame
    malformed: list[tuple[int, str]] = field(default_factory=list)
    bad_text: list[int] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return self.cells.height + len(self.malformed) + len(self.bad_text)


def _pattern(width: int) -> re.Pattern[bytes]:
    cell = rb'(?:"(?:[^"]|"")*"|[^",]*)'
    return re.compile(cell + rb"(?:," + cell + rb"){%d}" % (width - 1))


def split(data: bytes | memoryview, header: Header) -> Records:
    """Records after line 1. Raises InvalidCsv when there is no data row."""
    data = bytes(data).removeprefix(codecs.BOM_UTF8)
    start = data.find(b"\n") + 1
    body = data[start:].rstrip(b"\r\n \t") if start else b""
    if not body:
        raise InvalidCsv("line 2: there is no data row after the header")
    fast = _fast(body, header.width)
    return fast if fast is not None else _scrubbed(body, header.width)


def _read(body: bytes, width: int) -> pl.DataFrame:
    names = [f"c{n}" for n in range(width)]
    return pl.read_csv(body, has_header=False, schema=dict.fromkeys(names, pl.String), infer_schema=False)


def _fast(body: bytes, width: int) -> Records | None:
    """None when the plain reader can't be believed."""
    if b"\x00" in body or b"\n\n" in body or b"\n\r\n" in body:
        return None
    try:
        cells = _read(body, width)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        return None
    if cells.height != body.count(b"\n") + 1:
        return None
    suspicious = cells.select(
        pl.any_horizontal(pl.all().str.contains('"', literal=True).fill_null(False))
        | pl.any_horizontal(pl.all().str.len_bytes().fill_null(0) > CELL_MAX)
        | pl.last().is_null()
    ).to_series()
    if suspicious.any() and not _all_records(body, suspicious, width):
        return None
    lines = pl.int_range(2, cells.height + 2, dtype=pl.UInt32, eager=True)
    return Records(cells.fill_null("").with_columns(line=lines))


def _all_records(body: bytes, suspicious: pl.Series, width: int) -> bool:
    raw = body.split(b"\n")
    is_record = _pattern(width).fullmatch
    return all(
        len(line := raw[at]) < _LINE_MAX and is_record(line.removesuffix(b"\r")) and not _has_long_cell(line)
        for at in suspicious.arg_true()
    )


def _has_long_cell(line: bytes) -> bool:
    return (
        len(line) > CELL_MAX
        and max(len(cell) for cell in next(csv.reader([line.decode("utf-8", "replace")]))) > CELL_MAX
    )


def _scrubbed(body: bytes, width: int) -> Records:
    """Line by line: what is a record goes to the plain reader, what is not is told with its line number."""
    found = _Scrub(width)
    found.run(body.split(b"\n"))
    cells = (
        _read(b"\n".join(found.good), width)
        if found.good
        else pl.DataFrame(schema={f"c{n}": pl.String for n in range(width)})
    )
    cells = cells.fill_null("").with_columns(line=pl.Series(found.lines, dtype=pl.UInt32))
    if found.joined:
        # Records over several lines: few, so read one by one.
        extra = pl.DataFrame([cell for _, cell in found.joined], schema=[f"c{n}" for n in range(width)], orient="row")
        lines = pl.Series([line for line, _ in found.joined], dtype=pl.UInt32)
        cells = pl.concat([cells, extra.with_columns(line=lines)]).sort("line")
    return Records(cells, found.malformed, found.bad_text)


class _Scrub:
    def __init__(self, width: int) -> None:
        self._width = width
        self._is_record = _pattern(width).fullmatch
        self.good: list[bytes] = []
        self.lines: list[int] = []
        self.joined: list[tuple[int, list[str]]] = []
        self.malformed: list[tuple[int, str]] = []
        self.bad_text: list[int] = []

    def run(self, raw: list[bytes]) -> None:
        at = 0
        while at < len(raw):
            at = self._take(raw, at)

    def _take(self, raw: list[bytes], at: int) -> int:
        """Settle the record that begins at raw[at]; returns where the next one begins."""
        line = raw[at].removesuffix(b"\r")
        if not line.strip():
            return at + 1
        number = at + 2
        if b"\x00" in line:
            self.bad_text.append(number)
            return at + 1
        if len(line) < _LINE_MAX and self._is_record(line):
            if not _has_long_cell(line):
                self.good.append(_utf8(line))
                self.lines.append(number)
                return at + 1
        elif line.count(b'"') % 2 and (record := self._join(raw, at)) is not None:
            cells, taken = record
            self.joined.append((number, cells))
            return at + taken
        self.malformed.append((number, self._why(line)))
        return self._next_record(raw, at + 1)

    def _join(self, raw: list[bytes], at: int) -> tuple[list[str], int] | None:
        """The record that a quoted line end spreads over several lines, if it is one."""
        text = raw[at]
        for taken in range(2, min(_RECORD_LINES_MAX, len(raw) - at) + 1):
            following = raw[at + taken - 1]
            if len(text) > _LINE_MAX or b"\x00" in following or self._looks_like_record(following):
                return None
            text += b"\n" + following
            whole = text.removesuffix(b"\r")
            if self._is_record(whole):
                cells = next(csv.reader(_pieces(_utf8(whole).decode()), strict=True))
                return None if max(map(len, cells)) > CELL_MAX else (cells, taken)
        return None

    def _looks_like_record(self, line: bytes) -> bool:
        return (
            len(line) < _LINE_MAX
            and _STARTS_RECORD.match(line) is not None
            and self._is_record(line.removesuffix(b"\r")) is not None
        )

    def _next_record(self, raw: list[bytes], at: int) -> int:
        """Lines that don't even begin like a record belong to the malformed one before them."""
        while at < len(raw) and not _STARTS_RECORD.match(raw[at][:40]):
            at += 1
        return at

    def _why(self, line: bytes) -> str:
        if len(line) >= _LINE_MAX:
            return f"the line is {len(line):,} bytes long"
        try:
            found = len(next(csv.reader([line.decode("utf-8", "replace")])))
        except (csv.Error, StopIteration):
            found = 0
        if line.count(b'"') % 2 or found == self._width:
            return "the quotes do not close"
        return f"{found} columns instead of {self._width}"


def _pieces(text: str) -> Iterator[str]:
    return iter(text.splitlines(keepends=True))


def _utf8(line: bytes) -> bytes:
    """A line that is no UTF-8 is read as Windows Latin-1, it alone."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", "replace").encode()
    return line
