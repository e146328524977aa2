"""Reads the marketplace's pricing CSV into a header and blocks of text cells, and writes the price
file. Pure.

Reading rests on one definition. A line that is by itself a well-formed record of the header's width
is *certain*: it is a record whatever surrounds it. The certain lines (nearly all of any file) go to
polars in one piece; only the lines between them are read record by record with the csv module, so
that a quote that never closes cannot swallow a good row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, compress
from typing import NamedTuple

import polars as pl

from cardsync import limits
from cardsync.catalog.marketplace_columns import COLUMNS, HEADER_ONLY
from cardsync.errors import InvalidCsv

REQUIRED = ("listing_id", "product_name", "condition_label", "quantity", "price")

MAX_HEADER_BYTES = 64 * 1024
# No real line comes near this length: a longer one is a cell that swallowed others, or no CSV.
MAX_LINE_BYTES = 64 * 1024
MAX_CERTAIN_BYTES = 4_000
MAX_CELL_CHARS = 4_000
MAX_RECORD_LINES = 100
# No real file of 50 MB has this many rows, certain or not. Reading ten million lines of rubbish one
# by one takes a minute.
MAX_UNCERTAIN = 500_000

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


_LEADING_ID = re.compile(rb'\s*"?(0*[1-9][0-9]{0,17})"?\s*,')


class Fault(NamedTuple):
    """A record that cannot be read as cells, at the physical line where it starts."""

    line: int
    column: str | None
    code: str
    message: str


class Block(NamedTuple):
    """Consecutive records: `line` and one String column per known column of the header, and the
    faults between them.

    `faults` lists the first ones, as many as the reader asked for; `tried` counts the records that were not certain; `named` are
    the ids at the beginning of unreadable records; `unnamed` counts the records whose id cannot be
    read. `shaped` says that every cell has the requested shape.
    """

    frame: pl.DataFrame
    faults: list[Fault]
    fault_count: int
    tried: int
    named: list[int]
    unnamed: int
    shaped: bool


def read_header(line: bytes) -> Header:
    """Read a header line. Raises InvalidCsv, which names the missing columns."""
    if len(line) > MAX_HEADER_BYTES:
        raise InvalidCsv(f"line 1 is longer than {MAX_HEADER_BYTES:,} bytes, so it is no header")
    try:
        names = tuple(
            name.strip()
            for name in next(csv.reader([decode_line(line.removeprefix(_BOM))], strict=True), [])
        )
    except csv.Error as e:
        raise InvalidCsv(f"line 1 is no usable header: {e}") from e
    if len(names) > limits.CSV_MAX_COLUMNS:
        raise InvalidCsv(
            f"line 1 has {len(names):,} columns; at most {limits.CSV_MAX_COLUMNS} are read"
        )
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        if field := _READ.get(name.casefold()):
            positions.setdefault(field, position)
    if missing := [COLUMNS[field] for field in REQUIRED if field not in positions]:
        raise InvalidCsv(f"line 1 is no usable header: {', '.join(missing)} missing")
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


def read(
    pieces: Iterable[bytes],
    *,
    shapes: Mapping[str, str] | None = None,
    fast: bool = True,
    listed: int = limits.REJECTED_LISTED,
) -> tuple[Header, Iterator[Block]]:
    """Return a file's header, and its records from line 2 on, in file order, each block as soon as
    its bytes are there.

    `shapes` is the pattern that cells of a field usually have. `fast=False` leaves polars out and
    gives the same cells. A block lists at most `listed` faults.
    """
    pieces = iter(pieces)
    head = b""
    while (
        b"\n" not in head
        and len(head) <= MAX_HEADER_BYTES
        and (piece := next(pieces, None)) is not None
    ):
        head += piece
    header, start = split_header(head)
    return header, _read_blocks(
        chain([head[start:]], pieces),
        header,
        _Patterns(header, shapes or {}),
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
    line = 2
    budget = MAX_UNCERTAIN
    # This open run of uncertain lines is read again together with the lines after it.
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
    """Cut the pieces behind line ends; say of each whether it is the last."""
    begun = b""
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield begun + piece[:end], False
            begun = piece[end:]
        else:
            # The line is too long to be read anyway: one line may be a whole 40 MB file.
            begun = (begun + piece)[: 2 * MAX_LINE_BYTES]
    yield begun, True


def _utf8(block: bytes) -> bytes:
    try:
        block.decode()
    except UnicodeDecodeError:
        return b"\n".join(decode_line(line).encode() for line in block.split(b"\n"))
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
    """Return the block, its number of lines, and how many of them were used."""
    lines = pl.read_lines(text).with_row_index("index")
    shaped = bool(_certain(lines, patterns.shaped).all())
    certain = (
        pl.repeat(True, lines.height, eager=True) if shaped else _certain(lines, patterns.certain)
    )
    if certain.all():
        frame = _read_certain(text, header, lines.height, fast=fast)
        return (
            Block(
                _numbered(frame, lines["index"], line),
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
    others = _Uncertain(raw, header, line, budget, listed)
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
        frame,
        others.faults,
        others.fault_count,
        others.tried,
        others.named,
        others.unnamed,
        shaped=False,
    )
    return block, lines.height, others.used


def _numbered(frame: pl.DataFrame, index: pl.Series, line: int) -> pl.DataFrame:
    return frame.insert_column(0, (index + line).cast(pl.UInt32).alias("line"))


_CELL = r'(?:(?:"[^"\x00]*")+|[^",\r\n\x00]*)'


class _Patterns:
    """Build the pattern of a certain line: any cells, or cells that have their field's shape."""

    def __init__(self, header: Header, shapes: Mapping[str, str]) -> None:
        cells = [_CELL] * len(header.names)
        self.certain = f"^{','.join(cells)}$"
        for field in shapes.keys() & header.positions.keys():
            cells[header.positions[field]] = f'(?:"{shapes[field]}"|{shapes[field]})'
        self.shaped = f"^{','.join(cells)}$"


def _certain(lines: pl.DataFrame, pattern: str) -> pl.Series:
    line = pl.col("line")
    certain = (line.str.len_bytes() <= MAX_CERTAIN_BYTES) & line.str.contains(pattern)
    # The streaming engine uses every core for one column; the other engine uses a single one.
    return lines.lazy().select(certain).collect(engine="streaming").to_series()


def _classified(lines: pl.DataFrame, header: Header) -> pl.DataFrame:
    """Return for each line: its index; whether it is certain, blank, or hopeless (cannot begin a
    record); its cells; the next line that ends any record.
    """
    line = pl.col("line")
    cells = line.str.count_matches(",", literal=True) + 1
    return lines.select(
        "index",
        "certain",
        cells=cells,
        blank=line.str.strip_chars() == "",
        hopeless=~pl.col("certain")
        & ~line.str.contains('"', literal=True)
        & (cells != len(header.names)),
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
                infer_schema=False,
                empty_string_is_null=False,
            )
        except pl.exceptions.PolarsError:
            frame = pl.DataFrame()
        if frame.shape == (count, len(header.names)):
            return frame.select(
                frame.to_series(at).alias(field) for field, at in header.positions.items()
            )
    # Certain lines should hold only cells that polars can read; if one does not, the csv module
    # decides.
    records = csv.reader(io.StringIO(text.decode(), newline=""), strict=True)
    return pl.DataFrame(
        [[cells[at] for at in header.positions.values()] for cells in records],
        schema=schema,
        orient="row",
    )


class _Uncertain:
    """Read the lines between certain lines.

    `used` counts the settled lines; a record that may go on is left for later.
    """

    def __init__(
        self,
        raw: list[bytes],
        header: Header,
        line: int,
        budget: int,
        listed: int,
    ) -> None:
        self.raw = raw
        self.header = header
        self.line = line
        self.budget = budget
        self.listed = listed
        self.rows: list[tuple[int | str, ...]] = []
        self.faults: list[Fault] = []
        self.fault_count = 0
        self.tried = 0
        self.named: list[int] = []
        self.unnamed = 0
        self.used = len(raw)

    def frame(self) -> pl.DataFrame:
        schema = {"line": pl.UInt32, **dict.fromkeys(self.header.positions, pl.String)}
        return pl.DataFrame(self.rows, schema=schema, orient="row")

    def read(self, lines: pl.DataFrame, *, final: bool) -> None:
        lines = lines.filter(~pl.col("certain") & ~pl.col("blank"))
        within: list[int] = []
        settled = 0
        for index, barrier in (
            lines.filter(~pl.col("hopeless")).select("index", "next_barrier").iter_rows()
        ):
            if index < settled:
                continue
            if self.tried == self.budget:
                self._unread(
                    lines.filter((pl.col("index") >= settled) & ~pl.col("hopeless")),
                    "the file has too many unreadable lines",
                )
                break
            reach = min(barrier, index + MAX_RECORD_LINES)
            if (
                not final
                and reach == len(self.raw) < index + MAX_RECORD_LINES
                and not self._too_long(index)
            ):
                self.used = index
                break
            taken = self._take(index, reach)
            settled = index + taken
            within += range(index + 1, settled)
        hopeless = (
            pl.col("hopeless") & (pl.col("index") < self.used) & ~pl.col("index").is_in(within)
        )
        self._unread(lines.filter(hopeless), None)
        self.faults = sorted(self.faults)[: self.listed]

    def _unread(self, lines: pl.DataFrame, why: str | None) -> None:
        self.fault_count += lines.height
        for index in lines["index"]:
            self._name(index)
        for index, cells in lines.select("index", "cells").head(self.listed).iter_rows():
            self.faults.append(
                Fault(
                    self.line + index,
                    None,
                    "malformed_row",
                    why or self._miscounted(cells),
                )
            )

    def _miscounted(self, cells: int) -> str:
        return f"{cells:,} columns where the header has {len(self.header.names)}"

    def _take(self, index: int, reach: int) -> int:
        """Read the record that starts here.

        Returns how many lines it has; a malformed one counts as a single line.
        """
        self.tried += 1
        cells, lines, why = self._record(index, reach)
        if cells is None:
            self._fault(Fault(self.line + index, None, "malformed_row", why))
        elif (nul := next((at for at, cell in enumerate(cells) if "\0" in cell), None)) is not None:
            name = self.header.names[nul]
            self._fault(Fault(self.line + index, name, "bad_text", f"{name} holds a NUL byte"))
        else:
            self.rows.append(
                (self.line + index, *(cells[at] for at in self.header.positions.values()))
            )
        return lines

    def _fault(self, fault: Fault) -> None:
        self.fault_count += 1
        self._name(fault.line - self.line)
        if len(self.faults) < self.listed:
            self.faults.append(fault)

    def _name(self, index: int) -> None:
        """Remember the listing of an unreadable record: the file holds it, so its card is not gone."""
        line = self.raw[index]
        begins = self.header.positions["listing_id"] == 0 and _LEADING_ID.match(line[:40])
        if begins:
            self.named.append(int(begins[1]))
        if self._may_hold_several(line) if begins else line.strip(b' \t\r,"'):
            self.unnamed += 1

    def _may_hold_several(self, line: bytes) -> bool:
        """Count records whose line ends were lost: the line's beginning shows only the first of
        them.
        """
        commas = 2 * (len(self.header.names) - 1)
        return (
            b"\r" in line.rstrip(b"\r") or line.count(b",") >= commas or len(line) > MAX_LINE_BYTES
        )

    def _too_long(self, index: int) -> bool:
        return len(self.raw[index]) > MAX_LINE_BYTES

    def _record(self, index: int, reach: int) -> tuple[list[str] | None, int, str]:
        if self._too_long(index):
            return None, 1, f"the line is longer than {MAX_LINE_BYTES:,} bytes"
        reader = csv.reader(
            (self.raw[at].decode() + "\n" for at in range(index, reach)), strict=True
        )
        try:
            cells = next(reader)
        except csv.Error:
            return None, 1, "a quote is misplaced or never closed"
        width = len(self.header.names)
        if len(cells) != width:
            return None, 1, self._miscounted(len(cells))
        if max(map(len, cells)) > MAX_CELL_CHARS:
            return None, 1, f"a cell is longer than {MAX_CELL_CHARS:,} characters"
        if reader.line_num > 1 and any(
            "\n" in cell and cell.count(",") >= width - 1 for cell in cells
        ):
            return None, 1, "a quote that is never closed swallows the record after it"
        return cells, reader.line_num, ""


def price_updates_csv(rows: pl.DataFrame) -> bytes:
    """Return the marketplace's import file of rows as `parse` gives them, with a `target_price`, in
    the order given.
    """
    cells = {
        **{field: pl.col(field) for field in COLUMNS},
        **{
            field: _dollars(field) for field in ("market", "direct_low", "low_with_shipping", "low")
        },
        "listing_id": pl.col("listing_id").cast(pl.String),
        "quantity": pl.col("quantity").cast(pl.String),
        "add_to_quantity": pl.lit("0"),
        "price": _dollars("target_price"),
    }
    out = io.BytesIO()
    rows.select(**cells).write_csv(
        out,
        include_header=False,
        quote_style="always",
        line_terminator="\r\n",
    )
    return HEADER_ONLY + out.getvalue()


def _dollars(column: str) -> pl.Expr:
    """Write ten-thousandths as dollars with four decimals; no price is blank."""
    units = pl.col(column)
    fraction = (units % 10_000).cast(pl.String).str.zfill(4)
    return ((units // 10_000).cast(pl.String) + "." + fraction).fill_null("")
