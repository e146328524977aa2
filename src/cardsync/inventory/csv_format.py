"""The marketplace's pricing CSV, both directions: which column is which in what came, and the bytes of what goes back. Pure."""

from __future__ import annotations

import codecs
import csv
from dataclasses import dataclass

import polars as pl

from cardsync import limits
from cardsync.errors import InvalidCsv

COLUMNS = (
    "TCGplayer Id", "Product Line", "Set Name", "Product Name", "Title", "Number", "Rarity", "Condition", "TCG Market Price",
    "TCG Direct Low", "TCG Low Price With Shipping", "TCG Low Price", "Total Quantity", "Add to Quantity",
    "TCG Marketplace Price", "Photo URL",
)  # fmt: skip
HEADER_ONLY = (",".join(COLUMNS) + "\r\n").encode()

# Our field for each column that we read; names are compared trimmed and case-folded.
FIELDS = {
    "tcgplayer id": "listing_id",
    "product line": "product_line_label",
    "set name": "set_name",
    "product name": "product_name",
    "title": "title",
    "number": "number",
    "rarity": "rarity",
    "condition": "condition_label",
    "tcg market price": "market",
    "tcg direct low": "direct_low",
    "tcg low price with shipping": "low_with_shipping",
    "tcg low w/ shipping": "low_with_shipping",
    "tcg low price": "low",
    "total quantity": "quantity",
    "tcg marketplace price": "price",
    "my store price": "my_store_price",
    "photo url": "photo_url",
}
REQUIRED = ("TCGplayer Id", "Product Name", "Condition", "Total Quantity", "TCG Marketplace Price")
_NAME_OF = {field: name for name in (*COLUMNS, "My Store Price") if (field := FIELDS.get(name.casefold()))}

HEADER_MAX_BYTES = 64_000


def column_name(field: str) -> str:
    """The marketplace's name of one of our fields, for messages."""
    return _NAME_OF[field]


@dataclass(frozen=True)
class Header:
    """`width` columns, of which `position[field]` is ours."""

    width: int
    position: dict[str, int]


def first_line(data: bytes | memoryview) -> bytes:
    """Line 1 without its BOM and line end; raises InvalidCsv when it is no line of sensible length."""
    head = bytes(data[: HEADER_MAX_BYTES + 1]).removeprefix(codecs.BOM_UTF8)
    line, newline, _ = head.partition(b"\n")
    if not newline and len(head) > HEADER_MAX_BYTES - 3:
        raise InvalidCsv(f"line 1: the header is longer than {HEADER_MAX_BYTES:,} bytes")
    return line.rstrip(b"\r")


def read_header(line: bytes) -> Header:
    """Raises InvalidCsv naming what is missing."""
    try:
        names = next(csv.reader([line.decode("utf-8", "replace")], strict=True), [])
    except csv.Error as e:
        raise InvalidCsv(f"line 1: the header cannot be read: {e}") from e
    if len(names) > limits.CSV_MAX_COLUMNS:
        raise InvalidCsv(f"line 1: {len(names):,} columns; at most {limits.CSV_MAX_COLUMNS} are read")
    folded = [name.strip().casefold() for name in names]
    missing = [name for name in REQUIRED if name.casefold() not in folded]
    if missing:
        raise InvalidCsv(f"line 1: the header lacks {', '.join(missing)}")
    position: dict[str, int] = {}
    for at, name in enumerate(folded):
        if name in FIELDS:
            position.setdefault(FIELDS[name], at)
    return Header(len(names), position)


def accept_check(head: bytes) -> None:
    """On the first part of a file: a usable header and something in the line after it. Raises InvalidCsv."""
    if not head.strip():
        raise InvalidCsv("line 1: the file is empty")
    read_header(first_line(head))
    _, _, rest = head.partition(b"\n")
    if not rest.strip():
        raise InvalidCsv("line 2: there is no data row after the header")


def _amount(name: str) -> pl.Expr:
    column = pl.col(name)
    fraction = (column % 10_000 + 10_000).cast(pl.String).str.slice(1)
    return ((column // 10_000).cast(pl.String) + "." + fraction).fill_null("").alias(name)


def price_updates_csv(rows: pl.DataFrame) -> bytes:
    """Header bare, every value quoted, CRLF. `rows` as `parse` gives them, with `target_price`; texts byte for byte."""
    body = rows.select(
        pl.col("listing_id").cast(pl.String),
        "product_line_label", "set_name", "product_name", "title", "number", "rarity", "condition_label",
        _amount("market"), _amount("direct_low"), _amount("low_with_shipping"), _amount("low"),
        pl.col("quantity").cast(pl.String),
        pl.lit("0").alias("add"),
        _amount("target_price"),
        "photo_url",
    )  # fmt: skip
    written = body.write_csv(include_header=False, quote_style="always", line_terminator="\r\n")
    return HEADER_ONLY + written.encode()
