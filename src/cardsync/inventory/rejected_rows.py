"""The rejected rows of an upload as a CSV that people mend, and the whole file with the mended rows
in their place. Pure.

The rows keep the file's own columns; `Line` says which line each one was, and `Reason` why it was
rejected. A rejected row that is not in the mended file stays as it was, so that its card is kept.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from cardsync.errors import InvalidCsv
from cardsync.inventory.csv_format import (
    MAX_RECORD_LINES,
    Header,
    decode_line,
    split_header,
)
from cardsync.web.as_csv import as_it_was, encoded

LINE, REASON = "Line", "Reason"


def rejected_csv(data: bytes, rejected: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the rows of a file, inflated, that its report lists as rejected."""
    header, _ = split_header(data)
    lines = data.split(b"\n")
    rows: list[list[Any]] = [[*header.names, LINE, REASON]]
    for line, reasons in _by_line(rejected, len(lines)).items():
        cells, _ = _record(lines, line, header)
        width = len(header.names)
        whole = [*cells[:width], *[""] * (width - len(cells))]
        # Cells that are too many stand behind the reason, where nobody takes them for others.
        rows.append([*whole, line, "; ".join(reasons), *cells[width:]])
    return encoded(rows)


def merged(data: bytes, rejected: Sequence[Mapping[str, Any]], mended: bytes) -> bytes:
    """Return the file with the mended rows in place of those that were rejected. Raises InvalidCsv
    if the mended file has other columns, or rows that are no rejected ones.
    """
    header, _ = split_header(data)
    lines = data.split(b"\n")
    known = _by_line(rejected, len(lines))
    for line, cells in _mended_rows(mended, header, known).items():
        _, span = _record(lines, line, header)
        out = io.StringIO()
        csv.writer(out, lineterminator="", quoting=csv.QUOTE_ALL).writerow(cells)
        # The lines of a record stay as many as they were, so that later numbers still hold.
        lines[line - 1 : line - 1 + span] = [out.getvalue().encode(), *[b""] * (span - 1)]
    return b"\n".join(lines)


def _by_line(rejected: Sequence[Mapping[str, Any]], most: int) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in rejected:
        if 2 <= row["line"] <= most:
            found.setdefault(row["line"], []).append(row["message"])
    return found


def _mended_rows(
    mended: bytes,
    header: Header,
    known: Mapping[int, list[str]],
) -> dict[int, list[str]]:
    text = "\n".join(
        decode_line(line) for line in mended.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    )
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as e:
        raise InvalidCsv(f"the mended file cannot be read: {e}") from e
    names = [as_it_was(name).strip() for name in rows[0]] if rows else []
    if missing := [name for name in (*header.names, LINE) if name not in names]:
        raise InvalidCsv(f"line 1 of the mended file lacks the columns {', '.join(missing)[:200]}")
    # Columns may have the same name; the first ones of a name stand for the first of the file.
    left = list(enumerate(names))
    places = []
    for name in header.names:
        place = next((place for place in left if place[1] == name), None)
        if place is None:
            raise InvalidCsv(f"line 1 of the mended file has {name[:60]!r} too rarely")
        left.remove(place)
        places.append(place[0])
    at = next(place for place, name in reversed(list(enumerate(names))) if name == LINE)
    found: dict[int, list[str]] = {}
    for number, cells in enumerate(rows[1:], 2):
        if not any(cells):
            continue
        given = cells[at].strip() if at < len(cells) else ""
        line = int(given[:9]) if given.isascii() and given.isdigit() else 0
        if line not in known:
            raise InvalidCsv(f"row {number} of the mended file: {given[:20]!r} is no rejected line")
        found[line] = [as_it_was(cells[place]) if place < len(cells) else "" for place in places]
    if not found:
        raise InvalidCsv("line 2 of the mended file is missing: there is no row after the header")
    return found


def _record(lines: Sequence[bytes], line: int, header: Header) -> tuple[list[str], int]:
    """Return the cells of the record that begins at a line, and how many lines it has."""
    width = len(header.names)
    near = islice(lines, line - 1, line - 1 + MAX_RECORD_LINES)
    reader = csv.reader((decode_line(part) + "\n" for part in near), strict=True)
    try:
        cells = next(reader)
    except (csv.Error, StopIteration):
        cells = []
    swallowed = any("\n" in cell and cell.count(",") >= width - 1 for cell in cells)
    if len(cells) == width and not (reader.line_num > 1 and swallowed):
        return cells, reader.line_num
    try:
        return next(csv.reader([decode_line(lines[line - 1]).rstrip("\r")])), 1
    except (csv.Error, StopIteration):
        return [decode_line(lines[line - 1]).rstrip("\r")], 1
