"""Reads the header of the marketplace's inventory file, and finds the position of each column.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cardsync.catalog.app_files import app_of
from cardsync.catalog.marketplace_columns import COLUMNS
from cardsync.platform import limits
from cardsync.platform.errors import InvalidCsv
from cardsync.platform.file_kinds import PRICING, kind_in
from cardsync.platform.kit.csv_columns import CsvColumns
from cardsync.platform.table_text import (
    AS_EXPORTED,
    MOST_BEFORE,
    Form,
    NotATable,
    as_utf8,
    cells_of,
    column_name,
    delimiters_of,
    first_line,
    form_of,
    text_of_line,
)

REQUIRED = ("listing_id", "product_name", "condition_label", "quantity", "price")
ONLY_ADDS = (
    "this adds copies (Add to Quantity) and has no Total Quantity, so it is not an inventory:"
    " put it under Collections"
)
_ADDS = column_name(COLUMNS["add_to_quantity"])
_FIRST_ROWS = 200
MAX_HEADER_BYTES = 64 * 1024
_BESIDE = {
    "low_with_shipping": "tcg low price with shipping|tcg low w/ shipping",
    "my_store_price": "my store price",
}
_CSV = CsvColumns(
    {field: column_name(name) for field, name in COLUMNS.items() if field != "add_to_quantity"}
    | _BESIDE,
    REQUIRED,
)


@dataclass(frozen=True)
class Header:
    """The columns of a file. `names` has the file's own column names; `positions` maps our field
    names to positions in `names`; `form` is the file's format.
    """

    names: tuple[str, ...]
    positions: Mapping[str, int]
    form: Form = AS_EXPORTED

    def name_of(self, field: str) -> str | None:
        return self.names[self.positions[field]] if field in self.positions else None

    @property
    def needed(self) -> int:
        """Return the number of cells of a row up to and including the last required cell."""
        return 1 + max(self.positions[field] for field in REQUIRED)


def begin(pieces: Iterable[bytes]) -> tuple[Header, bytes, Iterator[bytes]]:
    """Read the header of a file from its pieces. Return the header, the text after it in the pieces
    that were read, and the remaining pieces. Raises InvalidCsv with the kind of the file or the
    missing columns.
    """
    try:
        encoding, others, head = as_utf8(pieces)
    except NotATable as e:
        raise InvalidCsv(str(e)) from e
    top = head[: MAX_HEADER_BYTES + 1]
    lines = [text_of_line(line).rstrip("\r") for line in top.split(b"\n")]
    kind = kind_in(lines)
    if kind is not None and kind is not PRICING:
        raise InvalidCsv(kind.told())
    form = form_of(lines, _CSV.fit, encoding)
    if form is None and (app := kind_in(lines, app_of)):
        raise InvalidCsv(app.told())
    form = form or _likeliest(lines, encoding)
    header = _header(lines, form)
    if _only_adds(header, lines):
        raise InvalidCsv(ONLY_ADDS)
    start = 0
    for _ in range(form.before + 1):
        start = (head.find(b"\n", start) + 1) or len(head)
    return header, head[start:], others


def read_whole(data: bytes) -> tuple[Header, bytes]:
    """Return a file's header and its whole text in UTF-8. Raises InvalidCsv."""
    header, _, _ = begin([data])
    _, others, head = as_utf8([data])
    return header, b"".join([head, *others])


def _only_adds(header: Header, lines: Sequence[str]) -> bool:
    """Return whether the first rows have quantities to add, but no stock. As an inventory, such a
    file would mark every card of the shop as sold out.
    """
    names = [column_name(name) for name in header.names]
    if _ADDS not in names:
        return False
    stock, adds = header.positions["quantity"], names.index(_ADDS)
    first = lines[header.form.before + 1 :][:_FIRST_ROWS]
    rows = [cells_of(line, header.form.delimiter) for line in first]
    whole = [cells for cells in rows if len(cells) == len(names)]
    return not any(cells[stock] for cells in whole) and any(
        cells[adds].strip("0.,") for cells in whole
    )


def _likeliest(lines: Sequence[str], encoding: str) -> Form:
    """Return the format in which a line has the most of our columns, for a file without a valid
    header.
    """
    found = (
        Form(encoding, delimiter, at)
        for at, line in enumerate(lines[:MOST_BEFORE])
        for delimiter in delimiters_of(line)
        if _CSV.places(cells_of(line, delimiter))
    )
    return max(
        found,
        key=lambda form: len(_CSV.places(cells_of(lines[form.before], form.delimiter))),
        default=first_line(lines, encoding),
    )


def _header(lines: Sequence[str], form: Form) -> Header:
    line = lines[form.before] if form.before < len(lines) else ""
    number = min(form.before, len(lines) - 1) + 1
    if len(line) >= MAX_HEADER_BYTES:
        raise InvalidCsv(
            f"line {number} is longer than {MAX_HEADER_BYTES:,} bytes, so it is not a header"
        )
    names = tuple(cells_of(line, form.delimiter))
    if len(names) > limits.CSV_MAX_COLUMNS:
        raise InvalidCsv(
            f"line {number} has {len(names):,} columns; at most {limits.CSV_MAX_COLUMNS} are read"
        )
    positions = _CSV.places(names)
    if missing := [COLUMNS[field] for field in _CSV.missing(names)]:
        said = f" (read as {form.said()})" if form.said() else ""
        raise InvalidCsv(
            "this isn't a TCGplayer pricing export. Missing columns"
            f"{f' in line {number}' if number > 1 else ''}: {', '.join(missing)}{said}"
        )
    return Header(names, positions, form)


def accept_check(head: bytes) -> None:
    """Check the first part of a file. Raises InvalidCsv if it has no usable header, or no text
    after the header.
    """
    header, rest, others = begin([head])
    if not rest.strip() and not b"".join(others).strip():
        raise no_data_row(header)


def no_data_row(header: Header) -> InvalidCsv:
    line = header.form.before + 2
    return InvalidCsv(f"line {line} is missing: there is no data row after the header")
