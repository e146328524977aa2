"""Converts a collection's bytes into a header and rows of cells. Reads tables and plain lists,
whose lines are like `4 Name (SET) 123 *F*`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from cardsync.buying.collections.file_formats import is_column, propose, recognize, says_card
from cardsync.buying.collections.list_lines import FIELDS, begins_with_copies, is_no_card, read_line
from cardsync.platform import limits
from cardsync.platform.errors import InvalidCsv
from cardsync.platform.file_kinds import ORDER_LIST, PULL_SHEET, SHIPPING, kind_in
from cardsync.platform.table_text import (
    SEP,
    Form,
    NotATable,
    Row,
    cells_of,
    first_line,
    form_of,
    lines_of,
    read_rows,
    without_headers,
)

TEXT_HEADER: Final = FIELDS
# The number of lines by which a list is distinguished from a table without a known column.
_TOLD_BY: Final = 10


class CollectionText(NamedTuple):
    """The header and the rows of a file. For a plain list, `header` is empty, and rows have the
    cells of TEXT_HEADER.
    """

    header: list[str]
    rows: list[Row]
    form: Form


def read_text(data: bytes) -> CollectionText:
    """Parse the bytes. Raises InvalidCsv if the file has no rows or is no text."""
    try:
        lines, encoding = lines_of(data)
    except NotATable as e:
        raise InvalidCsv(str(e)) from e
    if not any(line.strip() and not SEP.fullmatch(line) for line in lines):
        raise InvalidCsv("no cards found in the file")
    if (kind := kind_in(lines)) in (ORDER_LIST, PULL_SHEET, SHIPPING) and kind:
        raise InvalidCsv(kind.told())
    form = form_of(lines, _is_header, encoding)
    if form is None:
        form = first_line(lines, encoding)
        if not SEP.fullmatch(lines[0]) and _is_list(lines[form.before :], form.delimiter):
            return CollectionText([], list(_text_rows(lines)), form)
    return _table(lines, form)


def _is_header(cells: Sequence[str]) -> bool:
    return recognize(cells) is not None or (
        sum(map(is_column, cells)) > 1 and says_card(propose(cells, []))
    )


def _table(lines: Sequence[str], form: Form) -> CollectionText:
    line = lines[form.before].replace("\0", "")
    header = cells_of(line, form.delimiter)
    if len(header) > limits.CSV_MAX_COLUMNS or not header:
        number, most = form.before + 1, limits.CSV_MAX_COLUMNS
        raise InvalidCsv(
            f"line {number} has {len(header):,} columns; at most {most} are read"
            if header
            else f"line {number} cannot be read: a quote is misplaced or never closed"
        )
    rows = without_headers(read_rows(lines, form, len(header), 1), header)
    # An unreadable row has its whole text as its only cell.
    kept = [
        Row(row.line, [lines[row.line - 1].replace("\0", "")], row.fault) if row.fault else row
        for row in rows
    ]
    return CollectionText(header, kept, form)


def _is_list(given: Iterable[str], delimiter: str) -> bool:
    """Return whether the lines are a plain list of cards, whose names may contain commas, and not a
    table.
    """
    lines = list(islice(filter(None, map(str.strip, given)), _TOLD_BY))
    if begins_with_copies(lines[0]) or delimiter not in re.sub(r'"[^"]*"', "", lines[0]):
        return True
    if any(map(is_column, re.split(rf'["{delimiter}]+', lines[0]))):
        return False
    if is_no_card(lines[0]):
        return True
    if any(map(begins_with_copies, lines)):
        return True
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    # In a table, each line has the same number of delimiters. In names, a space follows each comma.
    counts = {line.count(delimiter) for line in bare}
    return len(counts) > 1 or all(line.count(f"{delimiter} ") in counts for line in bare)


def _text_rows(lines: Iterable[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        plain = line.replace("\0", "").strip()
        if not plain or is_no_card(plain):
            continue
        found = read_line(plain)
        if found is None:
            yield Row(number, [plain], "must be like “4 Name (SET) 123”")
        else:
            yield Row(number, list(found))
