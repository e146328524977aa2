"""Reads the records of an inventory file that are not certain lines (see `csv_format.py`): records
with stray quotes, line ends in cells, or another number of cells than the header. Pure.
"""

from __future__ import annotations

import csv
import re
from typing import Final, NamedTuple

import polars as pl

from cardsync.catalog.condition import read_condition
from cardsync.imports.csv_header import Header
from cardsync.platform.table_text import (
    is_blank,
    miscounted,
    plain_cell,
    typed_whole,
    unwrapped,
    with_stray_quotes,
)

# Real lines are much shorter. A longer line has a cell that swallowed other cells, or is not CSV.
MAX_LINE_BYTES = 64 * 1024
MAX_CELL_CHARS = 4_000
MAX_RECORD_LINES = 100
_LEADING_ID = re.compile(rb'\s*"?(0*[1-9][0-9]{0,17})(?:[.,]0+)?"?\s*[,;\t|]')
_MISPLACED: Final = "a quote is misplaced or never closed"


class Fault(NamedTuple):
    """A record that cannot be read as cells, at the physical line where it starts."""

    line: int
    column: str | None
    code: str
    message: str


class Uncertain:
    """Reads the lines between certain lines. `used` is the number of lines that were read; a record
    that may continue in the next block is not read yet.
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
        return miscounted(cells, len(self.header.names))

    def _take(self, index: int, reach: int) -> int:
        """Read the record that starts at the line `index`. Return its number of lines; a malformed
        record counts as one line.
        """
        self.tried += 1
        cells, lines, why = self._record(index, reach)
        if cells is None:
            self._fault(Fault(self.line + index, None, "malformed_row", why))
        elif is_blank(cells):
            pass
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
        """Store the listing id of an unreadable record in `named`, so that its card does not count
        as absent. Count a record without a readable id, or one that may contain several records, in
        `unnamed`.
        """
        line = self.raw[index]
        begins = self.header.positions["listing_id"] == 0 and _LEADING_ID.match(line[:40])
        if begins:
            self.named.append(int(begins[1]))
        if self._may_hold_several(line) if begins else line.strip(b' \t\r,;|"'):
            self.unnamed += 1

    def _may_hold_several(self, line: bytes) -> bool:
        """Return whether the line may contain several records whose line ends were lost, of which
        only the first id can be read.
        """
        most = 2 * (len(self.header.names) - 1)
        return (
            b"\r" in line.rstrip(b"\r")
            or line.count(self.header.form.delimiter.encode()) >= most
            or len(line) > MAX_LINE_BYTES
        )

    def _too_long(self, index: int) -> bool:
        return len(self.raw[index]) > MAX_LINE_BYTES

    def _text(self, index: int) -> str:
        return self.raw[index].decode().removeprefix("\ufeff")

    def _record(self, index: int, reach: int) -> tuple[list[str] | None, int, str]:
        if self._too_long(index):
            return None, 1, f"the line is longer than {MAX_LINE_BYTES:,} bytes"
        reader = csv.reader(
            (self._text(at) + "\n" for at in range(index, reach)),
            delimiter=self.header.form.delimiter,
            strict=True,
        )
        delimiter, width = self.header.form.delimiter, len(self.header.names)
        try:
            cells, used = unwrapped(next(reader), delimiter), reader.line_num
        except csv.Error:
            cells = with_stray_quotes(self._text(index), delimiter, width)
            if not cells:
                return None, 1, _MISPLACED
            used = 1
        if is_blank(cells):
            return cells, used, ""
        cells = self._fitted(cells)
        if len(cells) != width:
            return None, 1, self._miscounted(len(cells))
        if max(map(len, cells)) > MAX_CELL_CHARS:
            return None, 1, f"a cell is longer than {MAX_CELL_CHARS:,} characters"
        if used > 1 and any(
            "\n" in cell and cell.count(self.header.form.delimiter) >= width - 1 for cell in cells
        ):
            return None, 1, "an unclosed quote runs into the next row"
        return cells, used, ""

    def _fitted(self, cells: list[str]) -> list[str]:
        """Return a record with the header's number of cells: surplus blank cells at the end are
        removed, and missing blank cells at the end are added. The cells are unchanged if the id or
        the condition is not in its column, because then columns have shifted.
        """
        width = len(self.header.names)
        if len(cells) == width or not self.header.needed <= len(cells):
            return cells
        if not is_blank(cells[width:]):
            return cells
        fitted = [*cells[:width], *[""] * (width - len(cells))]
        label, given = (
            fitted[self.header.positions[name]] for name in ("condition_label", "listing_id")
        )
        try:
            typed_whole(given, self.header.form.decimal)
        except ValueError:
            return cells
        return cells if read_condition(plain_cell(label)).code is None else fitted
