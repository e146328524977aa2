"""Reads a catalog with the columns of `Printing` from CSV or Parquet, slice by slice, and lists the
unusable rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from cardsync.catalog.product_lines import NAMES
from cardsync.catalog.sources import csv_file
from cardsync.catalog.sources.source_record import Broken, CatalogError, Printing

REQUIRED = ("game", "set_name", "product_name")
COLUMNS = Printing._fields
SCHEMA = dict.fromkeys(COLUMNS, pl.String()) | {"product_id": pl.Int64()}
_ROWS_AT_ONCE = 50_000


def frames(path: Path, form: str, game: str | None) -> Iterator[tuple[pl.DataFrame, list[Broken]]]:
    """Yield the file's typed rows and broken rows, slice by slice. Raises CatalogError."""
    found = _parquet(path) if form == "parquet" else csv_file.frames(path)
    for rows, unread in found:
        good, broken = _usable(_complete(rows, path, game))
        yield good, [*unread, *broken]


def _parquet(path: Path) -> csv_file.Frames:
    first = 1
    try:
        for rows in pl.scan_parquet(path).collect_batches(
            chunk_size=_ROWS_AT_ONCE, maintain_order=True
        ):
            yield rows.with_row_index(csv_file.ROW, first), []
            first += rows.height
    except (pl.exceptions.PolarsError, OSError) as e:
        raise CatalogError(f"{path.name} cannot be read as parquet: {e}") from e


def _complete(rows: pl.DataFrame, path: Path, game: str | None) -> pl.DataFrame:
    if game is not None and "game" not in rows.columns:
        rows = rows.with_columns(game=pl.lit(game))
    missing = [name for name in REQUIRED if name not in rows.columns]
    if missing:
        raise CatalogError(
            f"{path.name} lacks the columns {', '.join(missing)};"
            f" a catalog has {', '.join(COLUMNS)}"
        )
    # All columns are read as text, so that a number like 006 keeps its zeros.
    return rows.select(
        csv_file.ROW,
        *(
            pl.col(name).cast(pl.String).str.strip_chars().replace("", None)
            if name in rows.columns
            else pl.lit(None, pl.String).alias(name)
            for name in COLUMNS
        ),
    )


def _usable(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Broken]]:
    number = pl.col("product_id").cast(pl.Int64, strict=False)
    reason = (
        pl.when(~pl.col("game").fill_null("").is_in(NAMES))
        .then(pl.format("{} is not a known product line", pl.col("game").fill_null("(nothing)")))
        .when(pl.col("set_name").is_null())
        .then(pl.lit("set_name is missing"))
        .when(pl.col("set_name").str.len_chars() > 500)
        .then(pl.lit("set_name is longer than 500 characters"))
        .when(pl.col("product_name").is_null())
        .then(pl.lit("product_name is missing"))
        .when(pl.col("product_id").is_not_null() & number.is_null())
        .then(pl.lit("product_id is not a number"))
    )
    rows = rows.with_columns(reason.alias("reason"))
    broken = rows.filter(pl.col("reason").is_not_null()).select(csv_file.ROW, "reason")
    good = rows.filter(pl.col("reason").is_null())
    return (
        good.with_columns(number, pl.col("language").fill_null("en")).select(COLUMNS),
        [Broken(f"row {row}", why) for row, why in broken.iter_rows()],
    )
