"""Writes a table as one Parquet file from the parts of its rows and the types of its columns.

Each part becomes its own file, and the files are joined by streaming, so that memory contains only
one part. Amounts become decimals, and times are in UTC; a type that Parquet lacks becomes text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import polars as pl

_CHUNK: Final = 1 << 18
_PLAIN: Final[Mapping[str, pl.DataType]] = {
    "int2": pl.Int64(),
    "int4": pl.Int64(),
    "int8": pl.Int64(),
    "float4": pl.Float64(),
    "float8": pl.Float64(),
}
_FIGURES: Final = frozenset({*_PLAIN, "bool", "date", "timestamptz", "numeric"})
# The most digits of a Parquet decimal.
_DIGITS: Final = 38


class ParquetSheet:
    """A Parquet file that grows by parts, in its own folder."""

    def __init__(self, folder: Path, columns: Mapping[str, tuple[str, int | None]]) -> None:
        """`columns` has each column's PostgreSQL type and, for an amount, its decimal places."""
        self._folder = folder
        self._columns = columns
        self._parts = list[Path]()
        self.rows = 0

    @property
    def cells(self) -> dict[str, type[pl.String]]:
        """Return the schema of appended rows: each cell is PostgreSQL's text."""
        return dict.fromkeys(self._columns, pl.String)

    @property
    def texts(self) -> list[str]:
        """Return the columns whose text any author may have written."""
        return [name for name, (kind, _) in self._columns.items() if kind not in _FIGURES]

    def append(self, frame: pl.DataFrame) -> None:
        """Append rows whose cells are PostgreSQL's texts."""
        typed = frame.select(
            _typed(name, *column_type) for name, column_type in self._columns.items()
        )
        path = self._folder / f"{len(self._parts)}.parquet"
        typed.write_parquet(path)
        self._parts.append(path)
        self.rows += frame.height

    def chunks(self) -> Iterator[bytes]:
        """Join the parts and yield the file's bytes."""
        if not self._parts:
            self.append(pl.DataFrame(schema=self.cells))
        whole = self._folder / "whole.parquet"
        pl.scan_parquet(self._parts).sink_parquet(whole, row_group_size=100_000)
        with whole.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def schema_of(columns: Mapping[str, tuple[str, int | None]]) -> pl.Schema:
    """Return the column types of a file."""
    texts = pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
    return texts.select(_typed(name, *column_type) for name, column_type in columns.items()).schema


def _typed(name: str, kind: str, places: int | None) -> pl.Expr:
    column = pl.col(name)
    if kind in _PLAIN:
        return column.cast(_PLAIN[kind])
    if kind == "bool":
        return column == "t"
    if kind == "date":
        return column.str.to_date("%Y-%m-%d")
    if kind == "timestamptz":
        # The session's zone is UTC: PostgreSQL writes the offset as +00.
        stamp = column.str.strip_suffix("+00")
        return stamp.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us").dt.replace_time_zone(
            "UTC"
        )
    if kind == "numeric" and places is not None:
        return column.cast(pl.Decimal(_DIGITS, places))
    return column
