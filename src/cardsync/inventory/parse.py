"""A pricing export's bytes in, a typed frame and every row that was kept out or noted, with its line and reason, out. Pure.

Prices are integer ten-thousandths of a dollar; null means no price. Texts stay byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

from cardsync import limits
from cardsync.inventory.csv_format import column_name, first_line, read_header
from cardsync.inventory.records import Records, split
from cardsync.money import MAX_UNITS, to_units

PRICES = ("market", "direct_low", "low_with_shipping", "low", "price", "my_store_price")
TEXTS = ("product_line_label", "set_name", "product_name", "title", "number", "rarity", "condition_label", "photo_url")

_PRICE = re.compile(r"\$?(?:\d+|\d{1,3}(?:,\d{3})+)?(?:\.\d*)?")
_NEGATIVE = re.compile(r"-\$?[\d,]*\.?\d*")
_INTEGER = re.compile(r"\d{1,10}(?:\.0*)?")
_MAX_QUANTITY = 2**31 - 1


@dataclass(frozen=True)
class Rejected:
    """A row that was kept out, or (noted) kept with something left out."""

    line: int
    column: str | None
    code: str
    message: str


@dataclass(frozen=True)
class ProductLines:
    """The lines an upload may speak of: labels as the marketplace writes them, and what the account has enabled, default first."""

    name_by_label: Mapping[str, str]
    enabled: Sequence[str]
    allow_unknown: bool = False

    def read(self, label: str, default: str | None) -> tuple[str | None, str]:
        """(internal name, "") or (None, why not)."""
        folded = label.strip().casefold()
        if not folded:
            return default or self.enabled[0], ""
        name = self.name_by_label.get(folded)
        if name is None and folded in self.name_by_label.values():
            name = folded
        if name is None:
            if not self.allow_unknown:
                return None, "unknown_product_line"
            return re.sub(r"\W+", "_", folded).strip("_") or "unknown", ""
        if name not in self.enabled:
            return None, "product_line_not_enabled"
        return name, ""


@dataclass(frozen=True)
class Parsed:
    frame: pl.DataFrame
    rows: int
    rejected: list[Rejected]
    rejected_count: int
    noted: list[Rejected]
    noted_count: int
    duplicates: int


def read_price(text: str) -> tuple[int | None, bool]:
    """(ten-thousandths, readable). Blank, 0 and negative are no price; `1,234.50` and `$5` are read; `1e9` and `NaN` are not."""
    plain = text.strip()
    if not plain:
        return None, True
    if not _PRICE.fullmatch(plain) or not any(c.isdigit() for c in plain):
        return None, bool(_NEGATIVE.fullmatch(plain)) and any(c.isdigit() for c in plain)
    try:
        units = to_units(Decimal(plain.replace("$", "").replace(",", "")))
    except InvalidOperation:
        return None, False
    if units > MAX_UNITS:
        return None, False
    return units or None, True


def read_quantity(text: str) -> int | None:
    """None for what is no whole number from 0; blank is 0."""
    plain = text.strip().replace(",", "")
    if not plain:
        return 0
    if not plain.isascii() or not _INTEGER.fullmatch(plain):
        return None
    number = int(plain.partition(".")[0])
    return number if number <= _MAX_QUANTITY else None


def parse(data: bytes | memoryview, lines: ProductLines, product_line: str | None) -> Parsed:
    """Raises InvalidCsv for a file without a usable header or without a data row."""
    header = read_header(first_line(data))
    records = split(data, header)
    cells = records.cells.select(
        "line",
        *(
            (pl.col(f"c{header.position[name]}") if name in header.position else pl.lit("")).alias(name)
            for name in ("listing_id", "quantity", *TEXTS, *PRICES)
            if name in header.position or name != "my_store_price"
        ),
    )
    frame, checks, notes = _typed(cells, lines, product_line)
    bad = pl.any_horizontal(pl.col(f"bad_{name}").is_not_null() for name in checks)
    rejected = _rejections(frame, cells, checks, records)
    kept = frame.filter(~bad).drop([f"bad_{name}" for name in checks])
    noted_rows = frame.filter(~bad & pl.any_horizontal(pl.col(f"noted_{name}") for name in notes))
    noted = _notes(noted_rows, cells, notes)
    kept = kept.drop([f"noted_{name}" for name in notes])
    once = kept.unique(["listing_id", "custom_title"], keep="last", maintain_order=True).drop("custom_title")
    return Parsed(
        frame=once,
        rows=records.rows,
        rejected=rejected[: limits.REJECTED_LISTED],
        rejected_count=len(rejected),
        noted=noted[: limits.REJECTED_LISTED],
        noted_count=len(noted),
        duplicates=kept.height - once.height,
    )


def _by_distinct(column: pl.Series, read: Callable[[str], Any], schema: dict[str, Any]) -> pl.DataFrame:
    """`read` over the distinct texts of a column: a file of 300,000 rows holds some ten thousand different prices."""
    distinct = column.unique()
    values = [read(text) for text in distinct]
    table = pl.DataFrame(values, schema=schema, orient="row").with_columns(distinct.alias("text"))
    return column.alias("text").to_frame().join(table, on="text", how="left", maintain_order="left").drop("text")


def _typed(
    cells: pl.DataFrame, lines: ProductLines, product_line: str | None
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """Typed columns, `bad_<check>` (a code or null) and `noted_<price>` flags."""
    prices = [name for name in PRICES if name in cells.columns]
    amounts = {name: _by_distinct(cells[name], read_price, {"units": pl.Int64, "ok": pl.Boolean}) for name in prices}
    quantity = _by_distinct(cells["quantity"], lambda text: (read_quantity(text),), {"n": pl.Int32})["n"]
    line = _by_distinct(
        cells["product_line_label"], lambda text: lines.read(text, product_line), {"name": pl.String, "code": pl.String}
    )
    ids = cells["listing_id"].str.strip_chars()
    listing_id = ids.cast(pl.Int64, strict=False)
    good_id = ids.str.contains(r"^\d{1,19}$") & (listing_id > 0).fill_null(False)
    custom = (cells["photo_url"] != "") & (cells["title"] != "")
    frame = cells.select("line", *TEXTS).with_columns(
        listing_id.alias("listing_id"),
        quantity.alias("quantity"),
        line["name"].alias("product_line"),
        custom.alias("custom"),
        *(amounts[name]["units"].alias(name) for name in prices),
        *((~amounts[name]["ok"]).alias(f"noted_{name}") for name in prices),
        pl.when(pl.lit(custom)).then("title").otherwise(pl.lit("")).alias("custom_title"),
        pl.when(pl.lit(~good_id)).then(pl.lit("bad_id")).alias("bad_id"),
        pl.when(pl.lit(quantity.is_null())).then(pl.lit("bad_quantity")).alias("bad_quantity"),
        pl.when(pl.lit(line["name"].is_null())).then(pl.lit(line["code"])).alias("bad_line"),
        pl.when(pl.col("product_name").str.strip_chars() == "").then(pl.lit("missing_name")).alias("bad_name"),
    )
    return frame, ["id", "quantity", "line", "name"], prices


_SOURCE = {"id": "listing_id", "quantity": "quantity", "line": "product_line_label", "name": "product_name"}
_WHY = {
    "bad_id": "{cell!r} is no marketplace id (a positive whole number)",
    "bad_quantity": "{cell!r} is no quantity (a whole number from 0)",
    "unknown_product_line": "{cell!r} is not a known product line",
    "product_line_not_enabled": "{cell!r} is not enabled for this account",
    "missing_name": "the product name is missing",
}


def _shown(cell: str) -> str:
    return cell if len(cell) <= 60 else cell[:57] + "…"


def _rejections(frame: pl.DataFrame, cells: pl.DataFrame, checks: list[str], records: Records) -> list[Rejected]:
    """Every row kept out, by line; of several reasons the first is told."""
    code = pl.coalesce(f"bad_{name}" for name in checks)
    which = pl.coalesce(pl.when(pl.col(f"bad_{name}").is_not_null()).then(pl.lit(name)) for name in checks)
    bad = frame.select("line", code=code, which=which).filter(pl.col("code").is_not_null())
    texts = cells.select("line", *_SOURCE.values()).join(bad, on="line", how="inner")
    found = [
        Rejected(
            row["line"],
            column_name(_SOURCE[row["which"]]),
            row["code"],
            _WHY[row["code"]].format(cell=_shown(row[_SOURCE[row["which"]]])),
        )
        for row in texts.iter_rows(named=True)
    ]
    found += [Rejected(line, None, "malformed_row", why) for line, why in records.malformed]
    found += [Rejected(line, None, "bad_text", "the line holds a NUL byte") for line in records.bad_text]
    return sorted(found, key=lambda row: row.line)


def _notes(noted: pl.DataFrame, cells: pl.DataFrame, prices: list[str]) -> list[Rejected]:
    if noted.is_empty():
        return []
    flags = noted.select("line", *(f"noted_{name}" for name in prices))
    texts = cells.select("line", *prices).join(flags, on="line", how="inner")
    return [
        Rejected(row["line"], column_name(name), "bad_price", f"{_shown(row[name])!r} is no price")
        for row in texts.sort("line").iter_rows(named=True)
        for name in prices
        if row[f"noted_{name}"]
    ]
