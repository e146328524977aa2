"""Parses an inventory upload into a typed frame and a list of faults, for the account's product
lines. Pure.

Texts are unchanged. Prices become integer ten-thousandths, and quantities integers. Columns are
converted as a whole; Python reads only texts of an unusual shape, each different text once. A row
with a bad price is accepted with a note; a row with any other bad cell is rejected. If TCG
Marketplace Price is blank, My Store Price is the price.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from cardsync.catalog.marketplace_columns import COLUMNS
from cardsync.imports import csv_format, csv_header
from cardsync.imports.csv_format import WHITE, Block
from cardsync.imports.csv_header import Header
from cardsync.imports.typed_cells import PRICES, codes_of, mapped, numbers_of, plain_of
from cardsync.platform import limits
from cardsync.platform.concurrency import ahead
from cardsync.platform.errors import InvalidCsv

TEXTS = ("set_name", "product_name", "title", "number", "rarity", "condition_label", "photo_url")
FRAME_COLUMNS = (
    "line", "listing_id", "product_line", "product_line_label", *TEXTS,
    "market", "direct_low", "low_with_shipping", "low", "price", "my_store_priced", "quantity", "custom",
)  # fmt: skip
MAX_LABEL_CHARS = 100
# More rows than any file has.
_EVERY = 1 << 31


@dataclass(frozen=True)
class Rejected:
    line: int
    column: str | None
    code: str
    message: str


@dataclass(frozen=True)
class ProductLines:
    """The account's product lines. `by_label` maps the case-folded label of every known line to its
    internal name. `enabled` has the account's lines, the default first; `disabled` has the lines
    that the seller turned off.
    """

    by_label: Mapping[str, str]
    enabled: tuple[str, ...]
    allow_unknown: bool = False
    disabled: tuple[str, ...] = ()

    def resolve(self, label: str, when_blank: str | None) -> tuple[str | None, str | None]:
        """Return the internal name of a label's product line and None; or None and the code of the
        reason to reject the row.
        """
        label = label.strip()
        if not label:
            name = when_blank or next(iter(self.enabled), None)
        else:
            folded = label.casefold()
            name = self.by_label.get(folded, folded if folded in self._names else None)
        if name is None and self.allow_unknown and len(label) <= MAX_LABEL_CHARS:
            name = re.sub(r"\W+", "_", label.casefold()).strip("_") or None
            if name is not None and name not in self._names:
                return name, None
        if name is None:
            return None, "unknown_product_line"
        return (name, None) if name in self.enabled else (None, "product_line_not_enabled")

    @property
    def _names(self) -> set[str]:
        return {
            *self.by_label.values(),
            *self.enabled,
            *self.disabled,
        }


@dataclass
class Parsed:
    """A parsed file. `rows` counts its data records: the rows of the frame, the rejected rows, and
    the duplicates that a later row replaced.
    """

    frame: pl.DataFrame
    read_as: ProductLines
    # The maximum number of rejected rows in `rejected`.
    listed: int = limits.REJECTED_LISTED
    rows: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    rejected_count: int = 0
    duplicates: int = 0
    noted: list[Rejected] = field(default_factory=list)
    noted_count: int = 0
    lines: list[str] = field(default_factory=list)
    new_lines: dict[str, str] = field(default_factory=dict)
    # The listing ids of rejected rows. Their cards are neither updated nor gone.
    rejected_ids: list[int] = field(default_factory=list)
    # The number of rejected rows whose listing id cannot be read.
    unnamed: int = 0

    def note(self, code: str, message: str, line: int = 1) -> None:
        """Add a note about the whole file. `line` is the line of the header."""
        self.noted_count += 1
        self.noted = [Rejected(line, None, code, message), *self.noted][: limits.REJECTED_LISTED]


def parse(pieces: Iterable[bytes], lines: ProductLines, product_line: str | None) -> Parsed:
    """Parse a file from pieces of its bytes. Raises InvalidCsv if the file has no usable header or
    no data row, and the errors of the iterator `pieces`; no bytes raise any other error.
    """
    pieces = iter(pieces)
    try:
        header, blocks = csv_format.read(pieces, shapes=plain_of)
    except InvalidCsv:
        # Reading all pieces raises an error of the body first, so that a gzip bomb is not reported
        # as a file without a header.
        deque(pieces, maxlen=0)
        raise
    parsed = Parsed(pl.DataFrame(), lines)
    labels = _Labels(lines, product_line)
    frames = [_typed(block, header, labels, parsed) for block in ahead(blocks)]
    if not parsed.rows:
        raise csv_header.no_data_row(header)
    if said := header.form.said():
        parsed.note("read_as", f"the file was read as {said}", header.form.before + 1)
    parsed.frame, parsed.duplicates = _last_of_each(frames)
    parsed.lines = sorted(parsed.frame["product_line"].unique())
    parsed.new_lines = {name: label for name, label in labels.new.items() if name in parsed.lines}
    return parsed


def every_rejected(
    pieces: Iterable[bytes],
    lines: ProductLines,
    product_line: str | None,
) -> Iterator[Rejected]:
    """Yield all rows that `parse` rejects, in file order. Memory holds only the rows of one piece."""
    header, blocks = csv_format.read(pieces, shapes=plain_of, listed=_EVERY)
    labels = _Labels(lines, product_line)
    for block in blocks:
        parsed = Parsed(pl.DataFrame(), lines, _EVERY)
        _typed(block, header, labels, parsed)
        yield from parsed.rejected


class _Labels:
    """The product line labels of one file; each different label is resolved once."""

    def __init__(self, lines: ProductLines, when_blank: str | None) -> None:
        self.lines = lines
        self.when_blank = when_blank
        self.seen: dict[str, tuple[str | None, str | None]] = {}
        self.new: dict[str, str] = {}

    def columns(self, labels: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Return a column of internal names and a column of error codes for the labels."""
        unique = labels.unique().to_list()
        for label in unique:
            if label not in self.seen:
                self.seen[label] = name, _ = self.lines.resolve(label, self.when_blank)
                if name is not None and name not in self.lines.enabled:
                    self.new.setdefault(name, label.strip())
        names, codes = (
            zip(*(self.seen[label] for label in unique), strict=True) if unique else ((), ())
        )
        return mapped(labels, unique, names, pl.String), mapped(labels, unique, codes, pl.String)


def _typed(
    block: Block,
    header: Header,
    labels: _Labels,
    parsed: Parsed,
) -> pl.DataFrame:
    """Return the accepted rows of a block; report rejected rows and bad prices in `parsed`."""
    texts = block.frame
    texts = texts.with_columns(
        pl.lit("").alias(name) for name in COLUMNS if name not in texts.columns
    )
    prices = [name for name in PRICES if name in header.positions]
    names, line_codes = labels.columns(texts["product_line_label"])
    numbers, bad = numbers_of(texts, prices, header.form.decimal, shaped=block.shaped)
    frame = texts.with_columns(
        *numbers,
        product_line=names,
        custom=(pl.col("photo_url").str.strip_chars() != "")
        & (pl.col("title").str.strip_chars() != ""),
    )
    frame = frame.with_columns(
        pl.lit(None, pl.Int64).alias(name) for name in PRICES if name not in header.positions
    )
    frame = frame.with_columns(
        price=pl.coalesce("price", "my_store_price"),
        my_store_priced=pl.col("price").is_null() & pl.col("my_store_price").is_not_null(),
    )
    code = codes_of(texts, bad, line_codes)
    good = code.is_null()
    if not good.all():
        said = ~_says_nothing(texts, header) | good
        if not said.all():
            texts, frame = texts.filter(said), frame.filter(said)
            code, good = code.filter(said), good.filter(said)
            bad = {name: flags.filter(said) for name, flags in bad.items()}
            block = block._replace(frame=block.frame.filter(said))
    parsed.rows += texts.height + block.fault_count
    parsed.rejected_ids += [*block.named, *frame["listing_id"].filter(~good).drop_nulls()]
    parsed.unnamed += block.unnamed + int((~good & (frame["listing_id"].fill_null(0) == 0)).sum())
    _report_rejected(block, code, header, parsed)
    _report_noted(
        texts,
        {name: flags & good for name, flags in bad.items() if name in prices},
        header,
        parsed,
    )
    frame = frame.select(FRAME_COLUMNS)
    # Most blocks have no rejected row; these are returned without a filter, which would copy them.
    return frame if good.all() else frame.filter(good)


def _says_nothing(texts: pl.DataFrame, header: Header) -> pl.Series:
    """Return which rows have only blank cells, which spreadsheets write, or repeat the header, as
    in joined files.
    """
    cells = {name: pl.col(name).str.strip_chars(WHITE) for name in header.positions}
    return texts.select(
        pl.all_horizontal(cell == "" for cell in cells.values())
        | pl.all_horizontal(
            cell == header.names[header.positions[name]] for name, cell in cells.items()
        )
    ).to_series()


# The column and the message of each error code.
_SAYS = {
    "bad_id": ("listing_id", "{column} is {text!r}, not a positive whole number"),
    "missing_name": ("product_name", "{column} is blank"),
    "text_too_long": ("set_name", "{column} is longer than 500 characters: {text!r}"),
    "unknown_product_line": (
        "product_line_label",
        "cardsync doesn't price {text!r}, so this row was skipped",
    ),
    "product_line_not_enabled": (
        "product_line_label",
        "{text!r} is turned off in your settings, so this row was skipped",
    ),
    "bad_quantity": ("quantity", "{column} is {text!r}, not a whole number from 0 to 2147483647"),
    "bad_price": ("price", "{column} {text!r} isn't a price"),
}


def _says(
    line: int,
    code: str,
    text: str,
    header: Header,
    name: str | None = None,
) -> Rejected:
    own, words = _SAYS[code]
    column = header.name_of(name or own)
    text = text if len(text) <= 60 else f"{text[:59]}…"
    return Rejected(
        line,
        column,
        code,
        words.format(column=column, text=text),
    )


def _report_rejected(
    block: Block,
    code: pl.Series,
    header: Header,
    parsed: Parsed,
) -> None:
    wrong = block.frame.with_columns(code).filter(pl.col("code").is_not_null())
    parsed.rejected_count += wrong.height + block.fault_count
    room = parsed.listed - len(parsed.rejected)
    said = [
        _says(
            row["line"],
            row["code"],
            row[_SAYS[row["code"]][0]],
            header,
        )
        for row in wrong.head(room).iter_rows(named=True)
    ]
    said += [Rejected(*fault) for fault in block.faults]
    parsed.rejected += sorted(said, key=lambda row: row.line)[:room]


def _report_noted(
    texts: pl.DataFrame,
    bad: dict[str, pl.Series],
    header: Header,
    parsed: Parsed,
) -> None:
    parsed.noted_count += sum(int(flags.sum()) for flags in bad.values())
    room = limits.REJECTED_LISTED - len(parsed.noted)
    said = [
        _says(line, "bad_price", text, header, name)
        for name, flags in bad.items()
        for line, text in texts.filter(flags).select("line", name).head(room).iter_rows()
    ]
    parsed.noted += sorted(said, key=lambda row: row.line)[:room]


def _last_of_each(frames: list[pl.DataFrame]) -> tuple[pl.DataFrame, int]:
    """Return the last row of each listing, and the number of replaced rows. Custom listings with
    the same id are distinguished by their titles.
    """
    keys = pl.concat(
        frame.select("listing_id", pl.when("custom").then("title").alias("own_title"))
        for frame in frames
    )
    # Titles are compared only for the few ids that occur more than once.
    keys = keys.with_row_index("at").filter(pl.col("listing_id").is_duplicated())
    replaced = keys.filter(~pl.struct("listing_id", "own_title").is_last_distinct())["at"]
    if replaced.is_empty():
        return _one(frames), 0
    start = 0
    for index, frame in enumerate(frames):
        # Each block replaces its original in the list, so that all rows are never in memory twice.
        at = pl.int_range(start, start + frame.height, dtype=pl.UInt32)
        frames[index] = frame.filter(~at.is_in(replaced.implode()))
        start += frame.height
    return _one(frames), replaced.len()


def _one(frames: list[pl.DataFrame]) -> pl.DataFrame:
    # With one chunk per column, a later `with_columns` does not copy the other columns.
    return pl.concat(frames, rechunk=True)
