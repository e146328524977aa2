"""Reads the values of one field of an upload into a typed column, and lists the positions of
unusable values. Pure.

JSON numbers with a point or an exponent arrive as bytes, so that they never become floats and they
keep their scale. Columns are parsed as a whole; only values of an unusual shape are read one by
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias, get_args

import polars as pl
from msgspec import UnsetType

from cardsync.platform import clock

# The column, and the positions of its unusable values. Absent fields and unusable values are null.
Typed: TypeAlias = tuple[pl.Series, list[int]]
_NOTHING = (type(None), UnsetType)


@dataclass(frozen=True)
class Column:
    """The SQL type and the reader of a field, with the error code and message for an unusable
    value.
    """

    sql: str
    read: Callable[[Sequence[object], Collection[type]], Typed]
    code: str
    says: str


def texts(longest: int | None = None) -> Column:
    def read(values: Sequence[object], kinds: Collection[type]) -> Typed:
        bad = []
        if not set(kinds) <= {str, *_NOTHING}:
            bad = [at for at, value in enumerate(values) if not isinstance(value, (str, *_NOTHING))]
        if bad or UnsetType in kinds:
            values = [value if type(value) is str else None for value in values]
        series = pl.Series(values, dtype=pl.String)
        if longest is not None and (long := series.str.len_chars() > longest).any():
            bad += long.arg_true().to_list()
            series = pl.select(pl.when(long.not_()).then(series)).to_series()
        return series, bad

    says = "not text" if longest is None else f"not text of at most {longest} characters"
    return Column("text", read, "bad_text", says)


def amounts() -> Column:
    def read(values: Sequence[object], kinds: Collection[type]) -> Typed:
        return _numbers(values, kinds, _AMOUNT, read_amount)

    return Column(
        "numeric", read, "bad_number", "not a number of at most 8 digits before the point"
    )


def amounts_from_zero() -> Column:
    plain = _AMOUNT.replace("-?", "")

    def one(value: object) -> str | None:
        amount = read_amount(value)
        return amount if amount is not None and Decimal(amount) >= 0 else None

    def read(values: Sequence[object], kinds: Collection[type]) -> Typed:
        return _numbers(values, kinds, plain, one)

    says = "not a number from zero of at most 8 digits before the point"
    return Column("numeric", read, "bad_number", says)


def whole(sql: str, smallest: int, largest: int) -> Column:
    plain = rf"^[0-9]{{1,{len(str(largest)) - 1}}}$"

    def one(value: object) -> str | None:
        number = read_number(value)
        if (
            number is None
            or not number.is_finite()
            or number.adjusted() > 19
            or number != int(number)
        ):
            return None
        return str(int(number)) if smallest <= number <= largest else None

    def read(values: Sequence[object], kinds: Collection[type]) -> Typed:
        series, bad = _numbers(values, kinds, plain, one)
        return series.cast(pl.Int64), bad

    return Column(sql, read, "bad_number", f"not a whole number from {smallest} to {largest}")


def each(
    sql: str,
    code: str,
    says: str,
    one: Callable[[str], str | None],
) -> Column:
    """Return a column of often repeated texts; each different text is read once."""

    def read(values: Sequence[object], kinds: Collection[type]) -> Typed:
        given = values
        if not set(kinds) <= {str, type(None)}:
            given = [
                value if type(value) is str else value if isinstance(value, _NOTHING) else False
                for value in values
            ]
        known: dict[object, str | None] = {
            text: one(text) if type(text) is str else None for text in set(given)
        }
        out = list(map(known.__getitem__, given))
        unusable = {
            text for text, read in known.items() if read is None and not isinstance(text, _NOTHING)
        }
        bad = [at for at, text in enumerate(given) if text in unusable] if unusable else []
        return pl.Series(out, dtype=pl.String), bad

    return Column(sql, read, code, says)


# A text of this shape fits into a numeric(12,4): up to eight digits and four decimals.
_AMOUNT = r"^-?[0-9]{1,8}(?:\.[0-9]{1,4})?$"
_LAST_DECIMAL = Decimal("0.0001")
_PLAIN_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def _numbers(
    values: Sequence[object],
    kinds: Collection[type],
    plain: str,
    one: Callable[[object], str | None],
) -> Typed:
    """Return numbers as texts. Texts that match `plain` are unchanged; `one` reads all others."""
    series = _written(values, kinds)
    odd = series.str.contains(plain).not_().arg_true().to_list()
    read = [one(values[at]) for at in odd]
    return series.scatter(odd, read) if odd else series, [
        at for at, text in zip(odd, read, strict=True) if text is None
    ]


def _written(values: Sequence[Any], kinds: Collection[type]) -> pl.Series:
    """Return the values as they are in the JSON text; a value that is neither number nor text
    becomes `?`.
    """
    if set(kinds) <= {bytes, type(None)}:
        return pl.Series(values, dtype=pl.Binary).cast(pl.String)
    texts = [
        value.decode() if (kind := type(value)) is bytes
        else value if kind is str else str(value) if kind is int
        else None if kind in _NOTHING else "?"
        for value in values
    ]  # fmt: skip
    return pl.Series(texts, dtype=pl.String)


def read_number(value: object) -> Decimal | None:
    """Read a JSON number, or a text that is a plain decimal."""
    match value:
        case bool():
            return None
        case int():
            return Decimal(value)
        case bytes():
            text = value.decode()
        case str() if _PLAIN_DECIMAL.fullmatch(value):
            text = value
        case _:
            return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def read_amount(value: object) -> str | None:
    """Return the number with its own scale, or rounded half-up to four decimals; None for a value
    that a numeric(12,4) cannot hold.
    """
    number = read_number(value)
    if number is None or not number.is_finite() or (number and number.adjusted() > 7):
        return None
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent < -4:
        number = number.quantize(_LAST_DECIMAL, ROUND_HALF_UP)
    if not number:
        return f"{number.quantize(Decimal(1).scaleb(min(0, max(exponent, -4)))):f}"
    return f"{number:f}" if number.adjusted() <= 7 else None


_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_YEARS = range(1990, 2080)
_SLASHED = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4}|[0-9]{2})")
_SPELLED = re.compile(
    rf"(?:{_DAYS}), ([0-9]{{1,2}}) ({'|'.join(_MONTHS)}) ([0-9]{{4}})",
    re.IGNORECASE,
)
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].*)?")


def read_date(text: str) -> str | None:
    """Read `07/03/2026`, `7/3/26`, `2026-07-03` (with or without a time) or `Friday, 03 July 2026`
    as ISO; None for anything else.

    A year outside `_YEARS` is a typing error and gives None, too.
    """
    day = _read_date(text.strip())
    return day.isoformat() if day is not None and day.year in _YEARS else None


def _read_date(text: str) -> date | None:
    try:
        if parts := _SLASHED.fullmatch(text):
            year = int(parts[3]) + (2000 if len(parts[3]) == 2 else 0)
            return date(
                year,
                int(parts[1]),
                int(parts[2]),
            )
        if parts := _SPELLED.fullmatch(text):
            return date(
                int(parts[3]),
                _MONTHS.index(parts[2].lower()) + 1,
                int(parts[1]),
            )
        return datetime.fromisoformat(text).date() if _ISO.fullmatch(text) else None
    except ValueError:
        return None


def read_moment(text: str) -> str | None:
    moment = clock.read_moment(text)
    return moment.isoformat() if moment else None


RefundType: TypeAlias = Literal["full", "partial"]


def read_refund_type(text: str) -> str | None:
    kind = text.strip().lower()
    return kind if kind in get_args(RefundType) else None
