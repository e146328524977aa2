"""Reads the header of the marketplace's inventory file: which column is where. Pure."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass

from cardsync import limits
from cardsync.catalog.marketplace_columns import COLUMNS
from cardsync.errors import InvalidCsv

REQUIRED = ("listing_id", "product_name", "condition_label", "quantity", "price")
MAX_HEADER_BYTES = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_READ = {
    name.casefold(): field for field, name in COLUMNS.items() if field != "add_to_quantity"
} | {
    "tcg low w/ shipping": "low_with_shipping",
    "my store price": "my_store_price",
}


@dataclass(frozen=True)
class Header:
    """The places of our columns in a file.

    `names` are all the file's own columns; `positions` index them by our names.
    """

    names: tuple[str, ...]
    positions: Mapping[str, int]

    def name_of(self, field: str) -> str | None:
        return self.names[self.positions[field]] if field in self.positions else None


def read_header(line: bytes) -> Header:
    """Read a header line. Raises InvalidCsv, which names the missing columns."""
    if len(line) > MAX_HEADER_BYTES:
        raise InvalidCsv(f"line 1 is longer than {MAX_HEADER_BYTES:,} bytes, so it is not a header")
    try:
        names = tuple(
            name.strip()
            for name in next(csv.reader([decode_line(line.removeprefix(_BOM))], strict=True), [])
        )
    except csv.Error as e:
        raise InvalidCsv(f"line 1 is not a usable header: {e}") from e
    if len(names) > limits.CSV_MAX_COLUMNS:
        raise InvalidCsv(
            f"line 1 has {len(names):,} columns; at most {limits.CSV_MAX_COLUMNS} are read"
        )
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        if field := _READ.get(name.casefold()):
            positions.setdefault(field, position)
    if missing := [COLUMNS[field] for field in REQUIRED if field not in positions]:
        raise InvalidCsv(f"line 1 is not a usable header: {', '.join(missing)} missing")
    return Header(names, positions)


def split_header(data: bytes) -> tuple[Header, int]:
    """Return the header and where the line after it begins. The search ends where a header must
    have ended.
    """
    end = data.find(b"\n", 0, MAX_HEADER_BYTES + 1)
    line = data[: MAX_HEADER_BYTES + 1] if end < 0 else data[:end]
    return read_header(line), len(data) if end < 0 else end + 1


def accept_check(head: bytes) -> None:
    """Check a file's first part. Raises InvalidCsv where it shows that there is no usable header,
    or no text after it.
    """
    _, start = split_header(head)
    if not head[start:].strip():
        raise no_data_row()


def no_data_row() -> InvalidCsv:
    return InvalidCsv("line 2 is missing: there is no data row after the header")


def decode_line(line: bytes) -> str:
    """Decode UTF-8, or for a line that is not UTF-8, the encoding of Western Windows programs."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")
