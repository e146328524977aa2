"""Reads the marketplace's pricing CSV into a header and blocks of text cells. Pure.

A line that is a well-formed record of the header's width is *certain*: it is a record regardless of
its neighbors. Polars reads all certain lines (nearly all of any file) in one call. The csv module
reads only the other lines, record by record, so that an unclosed quote cannot swallow a good row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, compress
from typing import NamedTuple

import polars as pl

from cardsync.imports.csv_header import Header, begin
from cardsync.imports.uncertain_records import MAX_LINE_BYTES, Fault, Uncertain
from cardsync.platform import limits
from cardsync.platform.table_text import text_of_line

MAX_CERTAIN_BYTES = 4_000
# The maximum number of uncertain lines; no real file of 50 MB has this many rows. Without a limit,
# ten million lines of garbage would take a minute.
MAX_UNCERTAIN = 500_000
# Invisible characters.
WHITE = " \t\r\0\x1a\ufeff\u00a0"
# A cell like ="12", whose marks keep a spreadsheet from reading the text as a number.
_AS_TEXT = '^="([^"]*)"$'


class Block(NamedTuple):
    """Consecutive records and the faults between them. `frame` has the column `line` and a String
    column for each known column of the header.

    `faults` lists the first faults, up to the reader's limit. `tried` counts the uncertain records.
    `named` lists the ids at the beginning of unreadable records; `unnamed` counts the records whose
    id cannot be read. `shaped` is true if every cell has its requested shape.
    """

    frame: pl.DataFrame
    faults: list[Fault]
    fault_count: int
    tried: int
    named: list[int]
    unnamed: int
    shaped: bool


def read(
    pieces: Iterable[bytes],
    *,
    shapes: Callable[[str], Mapping[str, str]] = lambda decimal: {},
    fast: bool = True,
    listed: int = limits.REJECTED_LISTED,
) -> tuple[Header, Iterator[Block]]:
    """Return a file's header and the blocks of its records in file order, each block as soon as its
    bytes arrive.

    `shapes` returns the usual pattern of each field's cells, for a decimal sign. `fast=False` reads
    the same cells without polars. A block lists at most `listed` faults.
    """
    header, rest, others = begin(pieces)
    return header, _read_blocks(
        chain([rest], others),
        header,
        _Patterns(header, shapes(header.form.decimal)),
        fast=fast,
        listed=listed,
    )


def _read_blocks(
    pieces: Iterable[bytes],
    header: Header,
    patterns: _Patterns,
    *,
    fast: bool,
    listed: int,
) -> Iterator[Block]:
    line = header.form.before + 2
    budget = MAX_UNCERTAIN
    # Uncertain lines at the end of a block are read again, together with the next block.
    opened = b""
    for text, final in _in_lines(pieces):
        text = opened + text
        if not text:
            continue
        block, lines, used = _read_block(
            _utf8(text),
            header,
            patterns,
            line,
            final=final,
            fast=fast,
            budget=budget,
            listed=listed,
        )
        yield block
        budget -= block.tried
        opened = b"" if used == lines else b"\n".join(text.split(b"\n")[used:])
        line += used


def _in_lines(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Split the pieces after line ends. Yield each piece, and whether it is the last."""
    begun = b""
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield begun + piece[:end], False
            begun = piece[end:]
        else:
            # The rest of a line that is too long is dropped: one line may be a whole 40 MB file.
            begun = (begun + piece)[: 2 * MAX_LINE_BYTES]
    yield begun, True


def _utf8(block: bytes) -> bytes:
    try:
        block.decode()
    except UnicodeDecodeError:
        return b"\n".join(text_of_line(line).encode() for line in block.split(b"\n"))
    return block


def _read_block(
    text: bytes,
    header: Header,
    patterns: _Patterns,
    line: int,
    *,
    final: bool,
    fast: bool,
    budget: int,
    listed: int,
) -> tuple[Block, int, int]:
    """Return the block, its number of lines, and the number of lines that were read; the others
    must be read again with the next block.
    """
    lines = pl.read_lines(text).with_row_index("index")
    shaped = bool(_certain(lines, patterns.shaped).all())
    certain = (
        pl.repeat(True, lines.height, eager=True) if shaped else _certain(lines, patterns.certain)
    )
    if certain.all():
        frame = _read_certain(text, header, lines.height, fast=fast)
        return (
            Block(
                _numbered(_as_seen(frame, text), lines["index"], line),
                [],
                0,
                0,
                [],
                0,
                shaped,
            ),
            lines.height,
            lines.height,
        )
    lines = _classified(lines.with_columns(certain=certain), header)
    raw = text.split(b"\n")[: lines.height]
    others = Uncertain(raw, header, line, budget, listed)
    others.read(lines, final=final)
    frame = _read_certain(
        b"\n".join(compress(raw, certain)),
        header,
        int(certain.sum()),
        fast=fast,
    )
    frame = pl.concat(
        [_numbered(frame, lines.filter("certain")["index"], line), others.frame()],
    ).sort("line")
    block = Block(
        _as_seen(frame, text),
        others.faults,
        others.fault_count,
        others.tried,
        others.named,
        others.unnamed,
        shaped=False,
    )
    return block, lines.height, others.used


def _as_seen(frame: pl.DataFrame, text: bytes) -> pl.DataFrame:
    """Return the cells without the marks of `_AS_TEXT`."""
    # Quotes are everywhere, and equals signs are rare, so these are searched first.
    if b"=" not in text or b'="' not in text:
        return frame
    return frame.with_columns(pl.col(pl.String).str.replace(_AS_TEXT, "${1}"))


def _numbered(frame: pl.DataFrame, index: pl.Series, line: int) -> pl.DataFrame:
    return frame.insert_column(0, (index + line).cast(pl.UInt32).alias("line"))


class _Patterns:
    """The patterns of a certain line: `certain` with any cells, `shaped` with cells that have their
    field's shape.
    """

    def __init__(self, header: Header, shapes: Mapping[str, str]) -> None:
        between = re.escape(header.form.delimiter)
        cell = rf'(?:(?:"[^"\x00]*")+|[^"{between}\r\n\x00]*)'
        cells = [cell] * len(header.names)
        self.certain = f"^{between.join(cells)}$"
        for field in shapes.keys() & header.positions.keys():
            cells[header.positions[field]] = f'(?:"{shapes[field]}"|{shapes[field]})'
        self.shaped = f"^{between.join(cells)}$"


def _certain(lines: pl.DataFrame, pattern: str) -> pl.Series:
    line = pl.col("line")
    certain = (line.str.len_bytes() <= MAX_CERTAIN_BYTES) & line.str.contains(pattern)
    # The streaming engine uses all cores for one column; the default engine uses one core.
    return lines.lazy().select(certain).collect(engine="streaming").to_series()


def _classified(lines: pl.DataFrame, header: Header) -> pl.DataFrame:
    """Return for each line: its index, its number of cells, whether it is certain, blank, or
    hopeless (cannot begin a record), and the index of the next line that ends any open record.
    """
    line = pl.col("line")
    delimiter = header.form.delimiter
    cells = line.str.count_matches(delimiter, literal=True) + 1
    ends_blank = line.str.strip_chars_end(" \r").str.ends_with(delimiter)
    too_many = (cells > len(header.names)) & ~ends_blank
    return lines.select(
        "index",
        "certain",
        cells=cells,
        blank=line.str.strip_chars(f"{WHITE}{delimiter}") == "",
        hopeless=~pl.col("certain")
        & ~line.str.contains('"', literal=True)
        & ((cells < header.needed) | too_many),
        next_barrier=pl.when(pl.col("certain") | (line.str.len_bytes() > MAX_LINE_BYTES))
        .then("index")
        .shift(-1)
        .backward_fill()
        .fill_null(lines.height),
    )


def _read_certain(
    text: bytes,
    header: Header,
    count: int,
    *,
    fast: bool,
) -> pl.DataFrame:
    """Split certain lines into cells."""
    schema = dict.fromkeys(header.positions, pl.String)
    if fast and count:
        try:
            frame = pl.read_csv(
                text,
                has_header=False,
                separator=header.form.delimiter,
                infer_schema=False,
                empty_string_is_null=False,
            )
        except pl.exceptions.PolarsError:
            frame = pl.DataFrame()
        if frame.shape == (count, len(header.names)):
            return frame.select(
                frame.to_series(at).alias(field) for field, at in header.positions.items()
            )
    # The csv module reads the lines if `fast` is false, or if Polars failed or split them
    # differently.
    records = csv.reader(
        io.StringIO(text.decode(), newline=""), delimiter=header.form.delimiter, strict=True
    )
    return pl.DataFrame(
        [[cells[at] for at in header.positions.values()] for cells in records],
        schema=schema,
        orient="row",
    )
