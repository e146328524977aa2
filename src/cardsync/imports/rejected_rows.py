"""Writes the rejected rows of an upload as a CSV that a person corrects, and the whole file with
the corrected rows instead of the rejected ones. Pure.

The CSV has the file's own columns, the column `Line` with the row's line number, and the column
`Reason`. A rejected row without a corrected row is unchanged in the whole file, so that its card
remains in stock.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

from cardsync.imports.csv_header import Header, read_whole
from cardsync.imports.parse import Rejected
from cardsync.imports.uncertain_records import MAX_RECORD_LINES
from cardsync.platform.errors import InvalidCsv
from cardsync.platform.kit.csv_table import encoded, quoted
from cardsync.platform.kit.safe_texts import as_it_was
from cardsync.platform.table_text import NotATable, read_table, text_of_line, typed_whole, unwrapped
from cardsync.web.csv_parts import PART

LINE, REASON = "Line", "Reason"


class _Lines:
    """Finds lines of a file by their numbers, which start at 1 and may only increase."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._line = 1
        self._at = 0

    def start(self, line: int) -> int | None:
        """Return the line's offset, or None after the last line."""
        while self._line < line:
            end = self._data.find(b"\n", self._at)
            if end < 0:
                return None
            self._at = end + 1
            self._line += 1
        return self._at

    def near(self) -> Iterator[bytes]:
        """Yield the current line and the lines after it, in total at most MAX_RECORD_LINES."""
        at = self._at
        for _ in range(MAX_RECORD_LINES):
            end = self._data.find(b"\n", at)
            yield self._data[at:] if end < 0 else self._data[at:end]
            if end < 0:
                return
            at = end + 1


def rejected_csv(data: bytes, rejected: Iterable[Rejected]) -> Iterator[bytes]:
    """Yield the CSV of a file's rejected rows in parts, in the order of the file's lines. `data` is
    not compressed.
    """
    header, data = read_whole(data)
    lines = _Lines(data)
    width = len(header.names)
    yield encoded([[*header.names, LINE, REASON]])
    part: list[list[object]] = []
    for line, said in groupby(rejected, key=lambda row: row.line):
        if line < header.form.before + 2 or lines.start(line) is None:
            continue
        cells, _ = _record(lines, header)
        whole = [*cells[:width], *[""] * (width - len(cells))]
        reasons = "; ".join(row.message for row in said)
        # Surplus cells are after the reason, so that they are in no named column.
        part.append([*whole, line, reasons, *cells[width:]])
        if len(part) == PART:
            yield encoded(part)
            part = []
    if part:
        yield encoded(part)


def merged(data: bytes, rejected: Iterable[Rejected], mended: bytes) -> bytes:
    """Return the file with the corrected rows instead of the rejected rows. Raises InvalidCsv if
    the corrected file lacks columns, or has a row whose line was not rejected.
    """
    header, data = read_whole(data)
    rows = _mended_rows(mended, header)
    known = {row.line for row in rejected if row.line in rows}
    if strange := [row for line, row in rows.items() if line not in known]:
        row = min(strange)
        raise InvalidCsv(
            f"row {row.number} of the corrected file: {row.given[:20]!r} is not a rejected line"
        )
    lines = _Lines(data)
    parts: list[bytes] = []
    at = 0
    for line in sorted(rows):
        start = lines.start(line)
        if start is None:
            break
        _, span = _record(lines, header)
        mended_line = quoted([rows[line].cells], header.form.delimiter, end="")
        # Keep the record's line count, so that later line numbers stay correct.
        parts += [data[at:start], mended_line, b"\n" * (span - 1)]
        at = start + sum(map(len, islice(lines.near(), span))) + span - 1
    return b"".join([*parts, data[at:]])


class _Mended(NamedTuple):
    """A row of the corrected file: its own line number, its cell in the column `Line`, and its
    other cells.
    """

    number: int
    given: str
    cells: list[str]


def _mended_rows(mended: bytes, header: Header) -> dict[int, _Mended]:
    """Return the corrected rows by their numbers in the column `Line`; 0 if it is not a number."""
    try:
        table = read_table(mended, lambda cells: LINE in cells)
    except NotATable as e:
        raise InvalidCsv(f"the corrected file cannot be read: {e}") from e
    names = [as_it_was(name).strip() for name in table.header]
    if missing := [name for name in (*header.names, LINE) if name not in names]:
        raise InvalidCsv(
            f"line 1 of the corrected file lacks the columns {', '.join(missing)[:200]}"
        )
    # Several columns may have the same name; these are matched in their order.
    left = list(enumerate(names))
    places = []
    for name in header.names:
        place = next((place for place in left if place[1] == name), None)
        if place is None:
            raise InvalidCsv(f"line 1 of the corrected file has too few {name[:60]!r} columns")
        left.remove(place)
        places.append(place[0])
    at = next(place for place, name in reversed(list(enumerate(names))) if name == LINE)
    found: dict[int, _Mended] = {}
    for number, cells, fault in table.rows:
        if fault:
            raise InvalidCsv(f"line {number} of the corrected file cannot be read: {fault}")
        given = cells[at].strip() if at < len(cells) else ""
        try:
            line = typed_whole(given, table.form.decimal)
        except ValueError:
            line = 0
        own = [as_it_was(cells[place]) if place < len(cells) else "" for place in places]
        found[line] = _Mended(number, given, own)
    if not found:
        raise InvalidCsv(
            "line 2 of the corrected file is missing: there is no row after the header"
        )
    return found


def _record(lines: _Lines, header: Header) -> tuple[list[str], int]:
    """Return the cells of the record that begins at the current line, and its number of lines."""
    width = len(header.names)
    delimiter = header.form.delimiter
    near = (text_of_line(part) + "\n" for part in lines.near())
    reader = csv.reader(near, delimiter=delimiter, strict=True)
    try:
        cells = unwrapped(next(reader), delimiter)
    except (csv.Error, StopIteration):
        cells = []
    swallowed = any("\n" in cell and cell.count(delimiter) >= width - 1 for cell in cells)
    if len(cells) == width and not (reader.line_num > 1 and swallowed):
        return cells, reader.line_num
    first = text_of_line(next(lines.near())).rstrip("\r")
    try:
        return unwrapped(next(csv.reader([first], delimiter=delimiter)), delimiter), 1
    except (csv.Error, StopIteration):
        return [first], 1
