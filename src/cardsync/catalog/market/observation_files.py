"""Reads sales and listings from CSV or Parquet as typed frames, slice by slice, and lists the
unusable rows with reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from cardsync.catalog.condition import CODES, LANGUAGES
from cardsync.catalog.printings import PRINTINGS
from cardsync.catalog.sources.csv_file import ROW, Frames, frame_of_rows, frames
from cardsync.catalog.sources.source_record import Broken, CatalogError
from cardsync.platform.errors import CommandError
from cardsync.platform.kit.csv_columns import CsvColumns
from cardsync.platform.money import MAX_UNITS, UNITS_PER_DOLLAR
from cardsync.platform.table_text import (
    AS_EXPORTED,
    HEAD_BYTES,
    NotATable,
    Table,
    column_name,
    typed_number,
    typed_whole,
)

_ROWS_AT_ONCE: Final = 250_000
_CELL: Final = ("condition", "printing", "language")
_REQUIRED: Final = ("product_id", *_CELL, "price", "quantity")
_CSV: Final = CsvColumns({name: column_name(name) for name in _REQUIRED}, _REQUIRED)
_TIMES: Final = ("sold_at", "fetched_at", "observed_at")
_TIME: Final = pl.Datetime("us", "UTC")
# Signs of an unusual CSV that is read row by row: a whole line as one quoted cell, a bare CR, a
# byte-order mark inside the file, or a cell like ="7".
_ODD: Final = re.compile(
    rb'^"(?:[^",\r\n]*,|""[^"\r\n]*"",)[^\r\n]*"\r?$|\r[^\n]|\xef\xbb\xbf|="', re.MULTILINE
)
_MOST_COPIES: Final = 1_000_000
# Times outside this range have a wrong unit. They are rejected here, before PostgreSQL rejects
# dates outside its calendar.
_OLDEST: Final = pl.datetime(1990, 1, 1, time_zone="UTC")
_NEWEST: Final = pl.datetime(2200, 1, 1, time_zone="UTC")


class MarketFileError(CommandError):
    """The file has no market observations; the message is one sentence."""


class Slice(NamedTuple):
    """A part of a file. `rows` counts its rows; condition, printing and language have the catalog's
    spellings.
    """

    rows: int
    sales: pl.DataFrame
    listings: pl.DataFrame
    broken: list[Broken]


def slices(path: Path, form: str, kind: str | None = None) -> Iterator[Slice]:
    """Yield the file's rows, slice by slice. `kind` (sale or listing) is that of all rows if the
    file has no column `kind`. Raises MarketFileError.
    """
    cells = _Cells()
    try:
        found, decimal = (_parquet(path), ".") if form == "parquet" else _csv(path)
        for raw, unread in found:
            _must_have(raw.columns, path)
            some = _slice(raw.select(ROW, *_known(raw.columns, kind)), cells, decimal)
            yield some._replace(rows=some.rows + len(unread), broken=[*unread, *some.broken])
    except NotATable as e:
        raise MarketFileError(f"{path.name}: {e}") from e
    except CatalogError as e:
        raise MarketFileError(str(e)) from e
    except (pl.exceptions.PolarsError, OSError) as e:
        raise MarketFileError(f"{path.name} cannot be read as {form}: {e}") from e


def _parquet(path: Path) -> Frames:
    scan, first = pl.scan_parquet(path), 1
    _must_have(scan.collect_schema().names(), path)
    for rows in scan.collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=True):
        yield rows.with_row_index(ROW, first), []
        first += rows.height


def _csv(path: Path) -> tuple[Frames, str]:
    """Return the rows of a CSV and its decimal sign. A file in the usual format is read in chunks,
    all other files row by row. Raises NotATable.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    begun = _CSV.table(head)
    is_usual = begun.form == AS_EXPORTED and list(map(_named, begun.header)) == begun.header
    if is_usual and b"\n" in head and not _ODD.search(head, 3):
        return frames(path), begun.form.decimal
    table = _CSV.table(path.read_bytes())
    return _of_table(table), table.form.decimal


def _of_table(table: Table) -> Frames:
    names = [*map(_named, table.header)]
    rows = enumerate(table.rows, 1)
    # The first frame is yielded even without rows, so that its columns are checked.
    yield frame_of_rows(names, [*islice(rows, _ROWS_AT_ONCE)])
    while some := [*islice(rows, _ROWS_AT_ONCE)]:
        yield frame_of_rows(names, some)


def _named(name: str) -> str:
    """Return a column's name in lower case with underscores."""
    return column_name(name).replace(" ", "_")


def _must_have(names: list[str], path: Path) -> None:
    missing = [name for name in _REQUIRED if name not in names]
    if not missing and not {"sold_at", "observed_at"} & set(names):
        missing = ["sold_at or observed_at"]
    if missing:
        raise MarketFileError(
            f"{path.name} lacks the columns {', '.join(missing)}; observations have"
            f" {', '.join(_REQUIRED)}, then sold_at and fetched_at, or observed_at"
        )


def _known(names: list[str], kind: str | None) -> list[pl.Expr]:
    optional = (*_TIMES, "kind")
    said = [pl.col(name) for name in (*_REQUIRED, *optional) if name in names]
    unsaid = [pl.lit(None, pl.String).alias(name) for name in _TIMES if name not in names]
    if "kind" not in names:
        unsaid.append(pl.lit(kind, pl.String).alias("kind"))
    return said + unsaid


class _Cells:
    """The known spellings of conditions, printings and languages, with the catalog's spellings."""

    def __init__(self) -> None:
        self._conditions = {**{code.lower(): code for code in CODES.values()}, **CODES}
        self._printings = {name.lower(): name for name in PRINTINGS}
        self._languages = {
            **{code: name for name, code in reversed(LANGUAGES.items())},
            **{name.lower(): name for name in LANGUAGES},
        }

    def of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with the catalog's spellings; null for an unknown text."""
        known = (self._conditions, self._printings, self._languages)
        return rows.with_columns(
            pl.col(name)
            .cast(pl.String)
            .str.strip_chars()
            .str.to_lowercase()
            .replace_strict(forms, default=None, return_dtype=pl.String)
            for name, forms in zip(_CELL, known, strict=True)
        )


def _slice(raw: pl.DataFrame, cells: _Cells, decimal: str) -> Slice:
    said = raw.select(_CELL)
    rows = cells.of(raw).with_columns(
        _whole(raw, "product_id", decimal),
        _whole(raw, "quantity", decimal),
        _units(raw, decimal),
        pl.col("kind").cast(pl.String).str.strip_chars().str.to_lowercase(),
        *(_moments(raw[name]) for name in _TIMES),
    )
    kind = (
        pl.when(pl.col("kind").is_not_null() & (pl.col("kind") != ""))
        .then(pl.col("kind").replace({"sales": "sale", "listings": "listing"}))
        .otherwise(
            pl.when(raw["sold_at"].is_not_null()).then(pl.lit("sale")).otherwise(pl.lit("listing"))
        )
    )
    rows = rows.with_columns(kind=kind)
    rows = rows.with_columns(_reason(said).alias("reason"))
    good = rows.filter(pl.col("reason").is_null()) if rows["reason"].count() else rows
    nothing = _nothing(raw) if rows["reason"].count() else None
    rows = rows if nothing is None else rows.with_columns(reason=pl.when(~nothing).then("reason"))
    return Slice(
        raw.height - (0 if nothing is None else int(nothing.sum())),
        good.filter(pl.col("kind") == "sale").select(
            "product_id", *_CELL, "price", "quantity", "sold_at", "fetched_at"
        ),
        good.filter(pl.col("kind") == "listing").select(
            "product_id", *_CELL, "price", "quantity", "observed_at"
        ),
        _broken(rows),
    )


def _nothing(raw: pl.DataFrame) -> pl.Series:
    """Return which rows are blank or repeat the header."""
    cells = {
        name: pl.col(name).cast(pl.String).str.strip_chars(" \t\0\x1a\u00a0") for name in _REQUIRED
    }
    return raw.select(
        pl.all_horizontal(cell.fill_null("") == "" for cell in cells.values())
        | pl.all_horizontal(cell.fill_null("") == name for name, cell in cells.items())
    ).to_series()


def _whole(raw: pl.DataFrame, name: str, decimal: str) -> pl.Expr:
    """Return a column of whole numbers, null for any other cell."""
    if raw.schema[name].is_integer():
        return pl.col(name).cast(pl.Int64, strict=False)
    if raw.schema[name].is_numeric():
        number = pl.col(name)
        return pl.when(number == number.floor()).then(number).cast(pl.Int64, strict=False)
    texts = _as_plain(raw[name].cast(pl.String), "[0-9]+", typed_whole, decimal)
    return pl.lit(texts.cast(pl.Int64, strict=False)).alias(name)


def _as_plain(
    said: pl.Series, plain: str, read: Callable[[str, str], object], decimal: str
) -> pl.Series:
    """Return numbers as plain texts; unusual formats are parsed one by one."""
    texts = said.str.strip_chars()
    read_ones: dict[str, str | None] = {}
    for text in texts.filter(~texts.str.contains(f"^{plain}$")).unique().drop_nulls():
        try:
            read_ones[text] = str(read(text, decimal))
        except ValueError:
            read_ones[text] = None
    if not read_ones:
        return texts
    return texts.replace(list(read_ones), pl.Series(read_ones.values(), dtype=pl.String))


def _units(raw: pl.DataFrame, decimal: str) -> pl.Expr:
    """Return prices in ten-thousandths, rounded half-up."""
    if raw.schema["price"].is_float():
        # A float is exact to fifteen digits; a price with its decimals has at most twelve.
        usable = pl.col("price").is_finite() & (pl.col("price") < 10**9)
        return (
            pl.when(usable)
            .then((pl.col("price") * UNITS_PER_DOLLAR).round(0, mode="half_away_from_zero"))
            .cast(pl.Int64, strict=False)
        )
    said = pl.col("price")
    if raw.schema["price"] == pl.String:
        plain = r"[0-9]+(\.[0-9]+)?" if decimal == "." else "[0-9]+"
        texts = _as_plain(raw["price"], plain, typed_number, decimal)
        said = pl.when(texts.str.contains(r"^[0-9]+(\.[0-9]+)?$")).then(texts).alias("price")
    return (
        (said.cast(pl.Decimal(24, 8), strict=False) * UNITS_PER_DOLLAR)
        .round(0, mode="half_away_from_zero")
        .cast(pl.Int64, strict=False)
    )


def _moments(said: pl.Series) -> pl.Series:
    """Return moments in UTC. A time without a zone is UTC, and a day is its midnight."""
    if isinstance(said.dtype, pl.Datetime):
        plain = said.cast(pl.Datetime("us", said.dtype.time_zone))
        if said.dtype.time_zone is None:
            return plain.dt.replace_time_zone("UTC")
        return plain.dt.convert_time_zone("UTC")
    if said.dtype == pl.Date:
        return said.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    if said.dtype != pl.String:
        return pl.Series(said.name, [None] * len(said), dtype=_TIME)
    # Parsing the usual format takes a quarter of the time of the general parsing below.
    usual = said.str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us", strict=False)
    if usual.null_count() == said.null_count():
        return usual.dt.replace_time_zone("UTC")
    text = pl.col(said.name).str.strip_chars().str.replace(" ", "T", literal=True)
    text = text.str.replace("[zZ]$", "+00:00")
    whole = pl.when(text.str.contains("T", literal=True)).then(text).otherwise(text + "T00:00:00")
    zoned = pl.when(whole.str.contains(r"[+-]\d\d:\d\d$")).then(whole).otherwise(whole + "+00:00")
    form = "%Y-%m-%dT%H:%M:%S%.f%:z"
    return (
        said.to_frame()
        .select(zoned.str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False))
        .to_series()
        .alias(said.name)
    )


def _reason(said: pl.DataFrame) -> pl.Expr:
    """Return the reason why a row is unusable; null for a usable row."""
    sale = pl.col("kind") == "sale"
    checks: list[tuple[pl.Expr, pl.Expr]] = [
        (~(pl.col("product_id") > 0).fill_null(False), pl.lit("product_id is not a number")),
        *(
            (
                pl.col(name).is_null(),
                pl.format(
                    f"{{}} is not a known {name}",
                    said[name].cast(pl.String).fill_null("(nothing)").str.head(80),
                ),
            )
            for name in _CELL
        ),
        (
            ~pl.col("price").is_between(1, MAX_UNITS).fill_null(False),
            pl.lit("price is not an amount above zero"),
        ),
        (
            ~pl.col("quantity").is_between(1, _MOST_COPIES).fill_null(False),
            pl.lit("quantity is not a whole number above zero"),
        ),
        (~pl.col("kind").is_in(["sale", "listing"]), pl.lit("kind is neither sale nor listing")),
        (sale & _no_time("sold_at"), pl.lit("sold_at is not a time")),
        (sale & _no_time("fetched_at"), pl.lit("fetched_at is not a time")),
        (~sale & _no_time("observed_at"), pl.lit("observed_at is not a time")),
    ]
    return pl.coalesce(pl.when(fails).then(why) for fails, why in checks)


def _no_time(name: str) -> pl.Expr:
    return ~pl.col(name).is_between(_OLDEST, _NEWEST).fill_null(False)


def _broken(rows: pl.DataFrame) -> list[Broken]:
    if not rows["reason"].count():
        return []
    bad = rows.select(ROW, "reason").drop_nulls("reason")
    return [Broken(f"row {row:,}", why) for row, why in bad.iter_rows()]
