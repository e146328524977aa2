"""Column expressions that the steps share: choices, conditions, half-up rounding of
integers, ages.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final

import polars as pl

from cardsync.platform.money import UNITS_PER_CENT
from cardsync.prices.engine.row_values import col, in_row, lit, when
from cardsync.prices.engine.rules import WHOLE_BP

TIME: Final = pl.Datetime("us", "UTC")


def where(condition: pl.Expr, value: pl.Expr | str) -> pl.Expr:
    return when(condition).then(value)


def first(choices: Iterable[tuple[pl.Expr, pl.Expr]], dtype: pl.DataType) -> pl.Expr:
    """Return the value of the first choice whose condition is true, null if none is."""
    result: pl.Expr = lit(None, dtype)
    for condition, value in reversed(list(choices)):
        result = when(condition).then(value).otherwise(result)
    return result


def true(condition: pl.Expr) -> pl.Expr:
    return condition.fill_null(False)


def moment(at: datetime) -> pl.Expr:
    return lit(at, TIME) if in_row() else _moment(at)


@lru_cache(maxsize=64)
def _moment(at: datetime) -> pl.Expr:
    """Return the time as a literal, cached because several steps of a run compare with the same
    time.
    """
    return pl.lit(at, TIME)


def since(oldest: datetime, column: str) -> pl.Expr:
    return true(col(column) >= moment(oldest))


def within(oldest: datetime, newest: datetime, column: str) -> pl.Expr:
    return true((col(column) >= moment(oldest)) & (col(column) <= moment(newest)))


def scaled(price: pl.Expr, factor: pl.Expr) -> pl.Expr:
    """Multiply the price by a number of basis points and round half-up."""
    return (price * factor + WHOLE_BP // 2) // WHOLE_BP


def cents(price: pl.Expr) -> pl.Expr:
    return (price + UNITS_PER_CENT // 2) // UNITS_PER_CENT


def cents_down(price: pl.Expr) -> pl.Expr:
    return price // UNITS_PER_CENT


def cents_up(price: pl.Expr) -> pl.Expr:
    return -(-price // UNITS_PER_CENT)
