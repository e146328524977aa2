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
from cardsync.errors import InvalidCsv
from cardsync.table_text import text_of_line

DELIMITERS: Final = ",;\t"
_SEP: Final = re.compile(r'\s*"?sep=(.)"?\s*', re.IGNORECASE)
_COPIES: Final = r"(?:(?P<copies>\d{1,6})\s*x?\s+)"
_LINE: Final = re.compile(
    rf"{_COPIES}(?P<name>[^\t]+?)"
    r"(?:\s+[(\[](?P<set>[A-Za-z0-9_]{2,8})[)\]](?:\s+#?(?P<number>[A-Za-z0-9★†/-]+))?)?"
    r"(?:\s+\*(?P<finish>[FE])\*|\s+\((?P<foil>foil|etched)\))?"
    r"(?:\s+[#\[^].*)?",
    re.IGNORECASE,
)
# Names of a deck's parts, and comments; they are not cards.
_PARTS: Final = frozenset(
    {"deck", "sideboard", "commander", "companion", "maybeboard", "mainboard", "about", "tokens"}
)
TEXT_HEADER: Final = ("copies", "name", "set_code", "number", "finish")


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
    if not delimiter or _LINE.fullmatch(head.strip()) or _is_part(head):
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


def _is_part(line: str) -> bool:
    return line.strip().strip(":").casefold() in _PARTS or line.strip().startswith(("//", "#"))


def _text_rows(text: str, skipped: int) -> Iterator[Cells]:
    for number, line in enumerate(text.split("\n"), skipped + 1):
        plain = line.strip()
        if not plain or _is_part(plain):
            continue
        found = _LINE.fullmatch(plain)
        if found is None:
            yield Cells(number, [plain], "must be like “4 Name (SET) 123”")
            continue
        finish = (found["finish"] or found["foil"] or "").upper()[:1]
        foil = {"F": "foil", "E": "etched", "": ""}[finish]
        named = [found["copies"], found["name"], found["set"] or "", found["number"] or "", foil]
        yield Cells(number, named)
