"""Converts printed collector numbers (`006/165`, `TG05/TG30`, `SWSH099`) into a comparable `key`
and `total`. Pure.

The key ignores case, spaces and the leading zeros of every run of digits; the text after a single
"/" is the total. Two numbers are the same if their keys are equal and, if both have a total, the
totals are equal too.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

import polars as pl

_ZEROS = r"(^|[^0-9])0+([0-9])"
_SPACES = r"[ \t\r\n]+"
# Magic's star is "★" in one source and "*" in another. The number of the card Unown "?" is
# URL-encoded in a tcgdex row.
_SAME = {"★": "*", "☆": "*", "%3F": "?"}
# The pattern allows only one slash: "2 // 4" is the number of a double-sided token, not the second
# of four.
_TOTAL = r"^([^/]+)/([^/]+)$"


class CollectorNumber(NamedTuple):
    key: str
    total: str | None

    def agrees_with(self, other: CollectorNumber) -> bool:
        totals_differ = (
            self.total is not None and other.total is not None and self.total != other.total
        )
        return self.key == other.key and not totals_differ


def read_collector_number(text: str | None) -> CollectorNumber:
    number = re.sub(
        _SPACES,
        "",
        unicodedata.normalize("NFKC", text or "").upper(),
    )
    for written, meant in _SAME.items():
        number = number.replace(written, meant)
    number = re.sub(_ZEROS, r"\1\2", number.removeprefix("#"))
    split = re.match(_TOTAL, number)
    return (
        CollectorNumber(split.group(1), split.group(2)) if split else CollectorNumber(number, None)
    )


def _normal(text: pl.Expr) -> pl.Expr:
    upper = text.fill_null("").str.normalize("NFKC").str.to_uppercase().str.replace_all(_SPACES, "")
    for written, meant in _SAME.items():
        upper = upper.str.replace_all(written, meant, literal=True)
    return upper.str.strip_prefix("#").str.replace_all(_ZEROS, "${1}${2}")


def number_columns(numbers: pl.Series) -> pl.DataFrame:
    """Return `number_key` ("" without a number) and `number_total` (null without a total), row for
    row.
    """
    rows = numbers.cast(pl.String).alias("number").to_frame()
    table = (
        rows.unique()
        .with_columns(_normal(pl.col("number")).alias("whole"))
        .select(
            "number",
            pl.coalesce(pl.col("whole").str.extract(_TOTAL, 1), "whole").alias("number_key"),
            pl.col("whole").str.extract(_TOTAL, 2).alias("number_total"),
        )
    )
    return rows.join(
        table,
        on="number",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).drop("number")
