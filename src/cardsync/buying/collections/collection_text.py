"""Reads a collection's bytes as a header and rows of cells, whatever its encoding, its delimiter and
a first line `sep=`; or as lines like `4 Name (SET) 123 *F*`. Pure.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cardsync import limits
from cardsync.buying.collections.file_formats import is_column
from cardsync.buying.collections.list_lines import FIELDS, begins_with_copies, is_no_card, read_line
from cardsync.errors import InvalidCsv
from cardsync.table_text import text_of_line

DELIMITERS: Final = ",;\t"
_SEP: Final = re.compile(r'\s*"?sep=(.)"?\s*', re.IGNORECASE)
TEXT_HEADER: Final = FIELDS
# So many lines tell a list from a table whose columns have no known name.
_TOLD_BY: Final = 10


class Cells(NamedTuple):
    """One row, the line of the file at which it ends, and its cells; a fault where it has none."""

    line: int
    cells: list[str]
    fault: str = ""


class CollectionText(NamedTuple):
    """`header` is empty where the file is plain text; its rows have the cells of TEXT_HEADER."""

    header: list[str]
    rows: list[Cells]


def decoded(data: bytes) -> str:
    """Return the text of UTF-8, UTF-16 with its mark, or a Western Windows encoding."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    plain = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return "\n".join(text_of_line(line) for line in plain.split(b"\n"))


def read_text(data: bytes) -> CollectionText:
    """Raises InvalidCsv where the file holds no row."""
    text = decoded(data).replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    skipped, delimiter = 0, ""
    first, _, rest = text.partition("\n")
    if said := _SEP.fullmatch(first):
        text, skipped, delimiter = rest, 1, said[1]
    lead = len(text) - len(text.lstrip("\n"))
    text, skipped = text[lead:], skipped + lead
    if not text.strip():
        raise InvalidCsv("the file holds no line with a card")
    head = text.partition("\n")[0]
    delimiter = delimiter or _delimiter(head)
    if not delimiter or (not said and _is_list(text, delimiter)):
        return CollectionText([], list(_text_rows(text, skipped)))
    return _table(text, skipped, delimiter)


def _delimiter(head: str) -> str:
    """Return the delimiter that the header has most of, outside quotes."""
    bare = re.sub(r'"[^"]*"', "", head)
    count = Counter(bare)
    best = max(DELIMITERS, key=lambda one: count[one])
    return best if count[best] else ""


def _table(text: str, skipped: int, delimiter: str) -> CollectionText:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = [name.strip() for name in next(reader)]
        if len(header) > limits.CSV_MAX_COLUMNS:
            most = limits.CSV_MAX_COLUMNS
            raise InvalidCsv(f"line 1 has {len(header):,} columns; at most {most} are read")
        rows = list(_table_rows(reader, len(header), skipped))
    except csv.Error as e:
        raise InvalidCsv(f"line {reader.line_num + skipped} cannot be read: {e}") from e
    return CollectionText(header, rows)


def _table_rows(reader: Any, width: int, skipped: int) -> Iterator[Cells]:
    """Return the rows with something in them, each with as many cells as the header."""
    for cells in reader:
        if not any(cells):
            continue
        line = reader.line_num + skipped
        if len(cells) == width:
            yield Cells(line, cells)
        elif len(cells) < width:
            yield Cells(line, [*cells, *[""] * (width - len(cells))])
        elif any(cell.strip() for cell in cells[width:]):
            yield Cells(line, cells[:width], f"has {len(cells)} cells, the header has {width}")
        else:
            yield Cells(line, cells[:width])


def _is_list(text: str, delimiter: str) -> bool:
    """Return whether the lines are a list of cards, whose names have commas, and no table."""
    lines = [line.strip() for line in text.split("\n") if line.strip()][:_TOLD_BY]
    if begins_with_copies(lines[0]):
        return True
    if any(map(is_column, re.split(rf'["{delimiter}]+', lines[0]))):
        return False
    if is_no_card(lines[0]):
        return True
    if any(map(begins_with_copies, lines)):
        return True
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    # In a name a space follows the comma.
    counts = {line.count(delimiter) for line in bare}
    return len(counts) > 1 or all(line.count(f"{delimiter} ") in counts for line in bare)


def _text_rows(text: str, skipped: int) -> Iterator[Cells]:
    for number, line in enumerate(text.split("\n"), skipped + 1):
        plain = line.strip()
        if not plain or is_no_card(plain):
            continue
        found = read_line(plain)
        if found is None:
            yield Cells(number, [plain], "must be like “4 Name (SET) 123”")
        else:
            yield Cells(number, list(found))
