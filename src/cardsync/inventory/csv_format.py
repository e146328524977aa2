"""The marketplace's pricing CSV, both directions: bytes → header and blocks of text cells; a frame → price-updates bytes. Pure.

Reading rests on one definition. A line that is by itself a well-formed record of the header's width with a numeric id is *certain*:
it is a record whatever stands around it. The certain lines (nearly all of any file) go to polars in one piece; only the runs of other
lines between them are read record by record with the csv module, so that a quote that never closes cannot swallow a good row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import polars as pl

from cardsync import limits
from cardsync.errors import InvalidCsv

# Our name of a column → the marketplace's.
COLUMNS = {
    "listing_id": "TCGplayer Id",
    "product_line_label": "Product Line",
    "set_name": "Set Name",
    "product_name": "Product Name",
    "title": "Title",
    "number": "Number",
    "rarity": "Rarity",
    "condition_label": "Condition",
    "market": "TCG Market Price",
    "direct_low": "TCG Direct Low",
    "low_with_shipping": "TCG Low Price With Shipping",
    "low": "TCG Low Price",
    "quantity": "Total Quantity",
    "add_to_quantity": "Add to Quantity",
    "price": "TCG Marketplace Price",
    "photo_url": "Photo URL",
}
REQUIRED = ("listing_id", "product_name", "condition_label", "quantity", "price")
HEADER_ONLY = ",".join(COLUMNS.values()).encode() + b"\r\n"

MAX_HEADER_BYTES = 64 * 1024
# No real line comes near: a longer one is a cell that swallowed others, or no CSV.
MAX_LINE_BYTES = 64 * 1024
MAX_CERTAIN_BYTES = 4_000
MAX_CELL_CHARS = 4_000
MAX_RECORD_LINES = 100
# Small enough that a block's intermediate columns don't matter beside the file, large enough that polars' start-up doesn't.
BLOCK_BYTES = 8 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_READ = {name.casefold(): field for field, name in COLUMNS.items() if field != "add_to_quantity"} | {
    "tcg low w/ shipping": "low_with_shipping",
    "my store price": "my_store_price",
}


@dataclass(frozen=True)
class Header:
    """Where our columns stand. `names` are all the file's own, `positions` index them by our names."""

    names: tuple[str, ...]
    positions: Mapping[str, int]

    def name_of(self, field: str) -> str | None:
        return self.names[self.positions[field]] if field in self.positions else None


class Fault(NamedTuple):
    """A record that cannot be read as cells, at the physical line where it starts."""

    line: int
    column: str | None
    code: str
    message: str


class Block(NamedTuple):
    """Some consecutive records: `line` and one String column per known column of the header, and what lay between them."""

    frame: pl.DataFrame
    faults: list[Fault]


def read_header(line: bytes) -> Header:
    """Raises InvalidCsv naming what is missing."""
    if len(line) > MAX_HEADER_BYTES:
        raise InvalidCsv(f"line 1 is longer than {MAX_HEADER_BYTES:,} bytes, so it is no header")
    try:
        names = tuple(
            name.strip() for name in next(csv.reader([decode_line(line.removeprefix(_BOM))], strict=True), [])
        )
    except csv.Error as e:
        raise InvalidCsv(f"line 1 is no usable header: {e}") from e
    if len(names) > limits.CSV_MAX_COLUMNS:
        raise InvalidCsv(f"line 1 has {len(names):,} columns; at most {limits.CSV_MAX_COLUMNS} are read")
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        if field := _READ.get(name.casefold()):
            positions.setdefault(field, position)
    if missing := [COLUMNS[field] for field in REQUIRED if field not in positions]:
        raise InvalidCsv(f"line 1 is no usable header: {', '.join(missing)} missing")
    return Header(names, positions)


def split_header(data: bytes) -> tuple[Header, int]:
    """The header and where the line after it begins. Looks no further than a header can reach."""
    end = data.find(b"\n", 0, MAX_HEADER_BYTES + 1)
    line = data[: MAX_HEADER_BYTES + 1] if end < 0 else data[:end]
    return read_header(line), len(data) if end < 0 else end + 1


def accept_check(head: bytes) -> None:
    """Raises InvalidCsv for what can be told from a file's first part: no usable header, or nothing after it."""
    _, start = split_header(head)
    if not head[start:].strip():
        raise no_data_row()


def no_data_row() -> InvalidCsv:
    return InvalidCsv("line 2 is missing: there is no data row after the header")


def decode_line(line: bytes) -> str:
    """UTF-8, or for a line that isn't, what a Western Windows program meant by it."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")


def read_blocks(
    data: bytes, header: Header, start: int, *, block_bytes: int = BLOCK_BYTES, fast: bool = True
) -> Iterator[Block]:
    """The records from byte `start` (line 2) on, in file order. `fast=False` leaves polars out and gives the same cells."""
    line, end = 2, start
    while start < len(data):
        end = _line_end(data, end + block_bytes)
        final = end == len(data)
        block, lines, used = _read_block(_utf8(_bounded(data, start, end)), header, line, final=final, fast=fast)
        yield block
        if used < lines:
            # An open run of uncertain lines is read again together with what follows.
            start += sum(len(raw) + 1 for raw in data[start:end].split(b"\n")[:used])
        else:
            start = end
        line += used


def _line_end(data: bytes, at: int) -> int:
    newline = data.find(b"\n", at - 1)
    return len(data) if newline < 0 else newline + 1


def _bounded(data: bytes, start: int, end: int) -> bytes:
    """These lines, the last one cut short where it is too long to be read anyway: one line may be a whole 40 MB file."""
    last = data.rfind(b"\n", start, end - 1) + 1 or start
    return data[start:end] if end - last <= 2 * MAX_LINE_BYTES else data[start : last + 2 * MAX_LINE_BYTES]


def _utf8(block: bytes) -> bytes:
    try:
        block.decode()
    except UnicodeDecodeError:
        return b"\n".join(decode_line(line).encode() for line in block.split(b"\n"))
    return block


def _read_block(text: bytes, header: Header, line: int, *, final: bool, fast: bool) -> tuple[Block, int, int]:
    """The block, how many lines it has and how many of them were used."""
    certain = _certain(text, header)
    if fast and certain.all() and (frame := _read_certain(text, header, certain.len())) is not None:
        numbers = pl.int_range(line, line + frame.height, dtype=pl.UInt32, eager=True)
        return Block(frame.insert_column(0, numbers.alias("line")), []), frame.height, frame.height
    raw = text.split(b"\n")[: certain.len()]
    read = _read_certain(b"\n".join(compress(raw, certain)), header, int(certain.sum())) if fast else None
    if read is None:
        # Not trusted after all, or not wanted: every line is read by itself.
        runs = _Runs(raw, header, line, certain, with_certain=True)
        frame = runs.read(final=final)
    else:
        runs = _Runs(raw, header, line, certain, with_certain=False)
        numbers = (certain.arg_true() + line).cast(pl.UInt32)
        frame = pl.concat([read.insert_column(0, numbers.alias("line")), runs.read(final=final)]).sort("line")
    return Block(frame, runs.faults), len(raw), runs.used


def _certain(text: bytes, header: Header) -> pl.Series:
    """Of each line, whether it is a record by itself: the proof that any CSV reader gives the same cells for it."""
    cell = r'(?:(?:"[^"\x00]*")+|[^",\r\n\x00]*)'
    number = r'(?:"[0-9]{1,18}"|[0-9]{1,18})'
    before = header.positions["listing_id"]
    after = len(header.names) - before - 1
    pattern = rf"^(?:{cell},){{{before}}}{number}(?:,{cell}){{{after}}}$"
    line = pl.col("line")
    certain = (line.str.len_bytes() <= MAX_CERTAIN_BYTES) & line.str.contains(pattern)
    # The streaming engine uses every core on what is one column to the other one.
    return pl.read_lines(text).lazy().select(certain).collect(engine="streaming").to_series()


def _read_certain(text: bytes, header: Header, count: int) -> pl.DataFrame | None:
    """Certain lines as cells; None if polars should ever see another number of records than there are lines."""
    if not count:
        return pl.DataFrame(schema=dict.fromkeys(header.positions, pl.String))
    try:
        frame = pl.read_csv(text, has_header=False, infer_schema=False, empty_string_is_null=False)
    except pl.exceptions.PolarsError:
        return None
    if frame.shape != (count, len(header.names)):
        return None
    return frame.select(frame.to_series(position).alias(field) for field, position in header.positions.items())


class _Runs:
    """Reads the runs of uncertain lines between certain ones. `used`: the lines settled, which end before a run that may go on."""

    def __init__(self, raw: list[bytes], header: Header, line: int, certain: pl.Series, *, with_certain: bool) -> None:
        self.raw, self.header, self.line = raw, header, line
        self.certain = certain.to_list()
        self.with_certain = with_certain
        self.faults: list[Fault] = []
        self.rows: list[tuple[int | str, ...]] = []
        self.used = 0

    def read(self, *, final: bool) -> pl.DataFrame:
        index = 0
        while index < len(self.raw):
            if self.certain[index]:
                if self.with_certain:
                    self._take(index, index + 1)
                index += 1
                continue
            stop = self._run_end(index)
            if stop == len(self.raw) and not final and stop - index < MAX_RECORD_LINES:
                break
            index += self._take(index, stop)
        self.used = index
        schema = {"line": pl.UInt32, **dict.fromkeys(self.header.positions, pl.String)}
        return pl.DataFrame(self.rows, schema=schema, orient="row")

    def _run_end(self, index: int) -> int:
        """Where the run ends, as far as a record that starts at `index` can reach."""
        reach = min(index + MAX_RECORD_LINES, len(self.raw))
        try:
            return self.certain.index(True, index + 1, reach)
        except ValueError:
            return reach

    def _take(self, index: int, stop: int) -> int:
        """Read the record that starts here. Returns how many lines it has; a malformed one counts as a single line."""
        if not self.raw[index].strip():
            return 1
        cells, lines, why = self._record(index, stop)
        line = self.line + index
        if cells is None:
            self.faults.append(Fault(line, None, "malformed_row", why))
        elif (nul := next((at for at, cell in enumerate(cells) if "\0" in cell), None)) is not None:
            name = self.header.names[nul]
            self.faults.append(Fault(line, name, "bad_text", f"{name} holds a NUL byte"))
        else:
            self.rows.append((line, *(cells[at] for at in self.header.positions.values())))
        return lines

    def _record(self, index: int, stop: int) -> tuple[list[str] | None, int, str]:
        if len(self.raw[index]) > MAX_LINE_BYTES:
            return None, 1, f"the line is longer than {MAX_LINE_BYTES:,} bytes"
        reader = csv.reader((self.raw[at].decode() + "\n" for at in range(index, stop)), strict=True)
        try:
            cells = next(reader)
        except csv.Error:
            return None, 1, "a quote is misplaced or never closed"
        width = len(self.header.names)
        if len(cells) != width:
            return None, 1, f"{len(cells):,} columns where the header has {width}"
        if max(map(len, cells)) > MAX_CELL_CHARS:
            return None, 1, f"a cell is longer than {MAX_CELL_CHARS:,} characters"
        if reader.line_num > 1 and any("\n" in cell and cell.count(",") >= width - 1 for cell in cells):
            return None, 1, "a quote that is never closed swallows the record after it"
        return cells, reader.line_num, ""


def price_updates_csv(rows: pl.DataFrame) -> bytes:
    """Rows as `parse` gives them, with a `target_price`, as the marketplace's import file, in the order given."""
    cells = {
        **{field: pl.col(field) for field in COLUMNS},
        **{field: _dollars(field) for field in ("market", "direct_low", "low_with_shipping", "low")},
        "listing_id": pl.col("listing_id").cast(pl.String),
        "quantity": pl.col("quantity").cast(pl.String),
        "add_to_quantity": pl.lit("0"),
        "price": _dollars("target_price"),
    }
    out = io.BytesIO()
    rows.select(**cells).write_csv(out, include_header=False, quote_style="always", line_terminator="\r\n")
    return HEADER_ONLY + out.getvalue()


def _dollars(column: str) -> pl.Expr:
    """Ten-thousandths as dollars with four decimals; no price is blank."""
    units = pl.col(column)
    fraction = (units % 10_000).cast(pl.String).str.zfill(4)
    return ((units // 10_000).cast(pl.String) + "." + fraction).fill_null("")
