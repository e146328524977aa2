"""Converts the cells of an inventory file, a column at a time: ids, quantities, prices in
ten-thousandths, and the reasons of rejections. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import polars as pl

from cardsync.platform.money import MAX_UNITS, read_amount, to_units
from cardsync.platform.table_text import typed_number, typed_whole

PRICES = ("market", "direct_low", "low_with_shipping", "low", "price", "my_store_price")
MAX_ID = 2**63 - 1
MAX_QUANTITY = 2**31 - 1
# An index contains the names of sets, and the size of its entries is limited.
MAX_SET_NAME_CHARS = 500
# The conversion of whole columns reads cells of these shapes exactly; other cells are read one by
# one. (99999999.99995 rounds to more than a price can be, so eight digits with five decimals are
# not plain.)
PLAIN = {
    "listing_id": r"[0-9]{1,18}",
    "quantity": r"[0-9]{0,9}",
    **dict.fromkeys(PRICES, r"(?:[0-9]{1,8}(?:\.[0-9]{1,4})?|[0-9]{1,7}\.[0-9]{5})?"),
}
# If the decimal sign is a comma, a point may group thousands, so only digits are plain.
_WHOLE_PRICE = r"[0-9]{0,8}"


def plain_of(decimal: str) -> dict[str, str]:
    """Return the plain shapes of cells for a decimal sign."""
    return PLAIN if decimal == "." else PLAIN | dict.fromkeys(PRICES, _WHOLE_PRICE)


def read_price(text: str, decimal: str = ".") -> int | None:
    """Return a price in ten-thousandths; None for a blank text, zero or a negative amount. Raises
    ValueError for a text that is not an amount.
    """
    if not text.strip():
        return None
    units = to_units(read_amount(typed_number(text, decimal)))
    return units if units > 0 else None


def read_quantity(text: str, decimal: str = ".") -> int:
    """Return a quantity; a blank text is 0. Raises ValueError."""
    return _whole(text, decimal, MAX_QUANTITY) if text.strip() else 0


def read_id(text: str, decimal: str = ".") -> int:
    if number := _whole(text, decimal, MAX_ID):
        return number
    raise ValueError(text)


def _whole(text: str, decimal: str, largest: int) -> int:
    if (number := typed_whole(text, decimal)) > largest:
        raise ValueError(text)
    return number


def mapped(
    series: pl.Series,
    old: list[str],
    new: Iterable[object],
    dtype: type[pl.DataType],
) -> pl.Series:
    return series.replace_strict(
        old,
        pl.Series(new, dtype=dtype),
        default=None,
        return_dtype=dtype,
    )


def numbers_of(
    texts: pl.DataFrame,
    prices: list[str],
    decimal: str,
    *,
    shaped: bool,
) -> tuple[list[pl.Series], dict[str, pl.Series]]:
    """Return the numeric columns, and for each column with unreadable cells, a mask of these cells.
    `shaped` declares that all cells are plain numbers, so none is unreadable.
    """
    fields = ("listing_id", "quantity", *prices)
    readers: dict[str, Callable[..., int | None]] = {
        "listing_id": read_id,
        "quantity": read_quantity,
    }
    odd = {} if shaped else _odd(texts, fields, plain_of(decimal))
    values = texts.select(
        pl.col("listing_id").cast(pl.Int64, strict=False),
        pl.when(pl.col("quantity") == "")
        .then(0)
        .otherwise(pl.col("quantity").cast(pl.Int64, strict=False))
        .alias("quantity"),
    ).hstack(_units(texts.select(prices)))
    columns = []
    bad = {}
    for name in fields:
        column = values[name]
        if name in odd:
            column, bad[name] = _one_by_one(
                texts[name],
                odd[name],
                column,
                partial(readers.get(name, read_price), decimal=decimal),
            )
        columns.append(column.cast(pl.Int32) if name == "quantity" else column)
    # A text of digits alone may still be an invalid id.
    zero = (columns[0] == 0).fill_null(False)
    if zero.any():
        bad["listing_id"] = bad["listing_id"] | zero if "listing_id" in bad else zero
    return columns, bad


def _odd(
    texts: pl.DataFrame, fields: Iterable[str], shapes: Mapping[str, str]
) -> dict[str, pl.Series]:
    """Return a mask of the cells that are not plain, for each field that has such cells."""
    plain = texts.select(pl.col(name).str.contains(f"^(?:{shapes[name]})$") for name in fields)
    return {flags.name: ~flags for flags in plain if not flags.all()}


def _units(amounts: pl.DataFrame) -> pl.DataFrame:
    """Convert plain amounts exactly to hundred-thousandths, and round these half-up to
    ten-thousandths.
    """
    # The steps are separate, because an expression that names a column twice reads it twice.
    fine = amounts.select(
        pl.all().cast(pl.Decimal(20, 5), strict=False).to_physical().cast(pl.Int64, strict=False),
    )
    units = fine.select((pl.all() + 5) // 10)
    return units.select(pl.when((pl.all() > 0) & (pl.all() <= MAX_UNITS)).then(pl.all()))


def _one_by_one(
    texts: pl.Series,
    odd: pl.Series,
    values: pl.Series,
    read: Callable[[str], int | None],
) -> tuple[pl.Series, pl.Series]:
    """Return the column with the `odd` cells read in Python, each different text once, and a mask
    of the unreadable cells.
    """
    numbers: dict[str, int | None] = {}
    bad: list[str] = []
    for text in texts.filter(odd).unique():
        try:
            numbers[text] = read(text)
        except ValueError:
            numbers[text] = None
            bad.append(text)
    read_ones = mapped(
        texts,
        list(numbers),
        numbers.values(),
        pl.Int64,
    )
    return read_ones.zip_with(odd, values), odd & texts.is_in(bad)


def codes_of(texts: pl.DataFrame, bad: dict[str, pl.Series], line_codes: pl.Series) -> pl.Series:
    """Return the code of the first reason to reject each row; null for an accepted row."""
    nothing = pl.repeat(False, texts.height, eager=True)
    return texts.select(
        pl.when(bad.get("listing_id", nothing)).then(pl.lit("bad_id"))
        .when(pl.col("product_name").str.strip_chars() == "").then(pl.lit("missing_name"))
        .when(pl.col("set_name").str.len_chars() > MAX_SET_NAME_CHARS).then(pl.lit("text_too_long"))
        .when(line_codes.is_not_null()).then(line_codes)
        .when(bad.get("quantity", nothing)).then(pl.lit("bad_quantity"))
        .alias("code")
    ).to_series()  # fmt: skip
