"""Reads and converts money: USD is `Decimal` at the edges and integer ten-thousandths of a dollar
inside the pricing engine, never a float. Every amount and percentage from outside is parsed here.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from numbers import Real
from typing import Final, overload

from cardsync.platform.table_text import typed_number

UNITS_PER_DOLLAR = 10_000
UNITS_PER_CENT = 100
# numeric(12,4): eight digits before the point, four after it.
MAX_UNITS = 10**12 - 1

_QUANTUM = Decimal("0.0001")
# An amount has no exponent, no grouping, and only ASCII digits. A longer text is not an amount.
_PLAIN: Final = re.compile(r"[+-]?(?=[0-9.]{1,40}$)(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_AMOUNT: Final = "must be an amount like 12.50, with at most eight digits before the point"
_PERCENT: Final = "must be a number like -5 or 12.5, with at most two decimals"
_DIGITS: Final = 8


def _decimal(given: object) -> Decimal | None:
    match given:
        case bool():
            return None
        case int() | Decimal():
            number = Decimal(given)
        case str() if _PLAIN.fullmatch(plain := given.strip()):
            number = Decimal(plain)
        case Real():
            number = Decimal(repr(given))
        case _:
            return None
    return number if number.is_finite() and number.adjusted() <= _DIGITS else None


def read_amount(given: object) -> Decimal:
    """Parse a JSON number or a plain decimal as text; a fifth decimal rounds half-up. Raises
    ValueError.
    """
    number = _decimal(given)
    if number is None or abs(units := to_units(number)) > MAX_UNITS:
        raise ValueError(_AMOUNT)
    return from_units(units)


def read_percent(text: str) -> int:
    """Return the basis points of a percentage that a person typed. Raises ValueError."""
    number = _decimal(typed_number(text).removesuffix("%").rstrip())
    if number is None:
        raise ValueError(_PERCENT)
    points = number * 100
    if points != int(points):
        raise ValueError(_PERCENT)
    return int(points)


def to_units(amount: Decimal) -> int:
    """Convert dollars to ten-thousandths; a fifth decimal rounds half-up."""
    return int(amount.quantize(_QUANTUM, ROUND_HALF_UP).scaleb(4))


def from_units(units: int) -> Decimal:
    """Convert ten-thousandths to dollars, with four decimals."""
    return Decimal(units).scaleb(-4)


def dollars_or_none(units: int | None) -> str | None:
    return None if units is None else dollars(units)


@overload
def usd(amount: Decimal) -> str: ...


@overload
def usd(amount: None) -> None: ...


@overload
def usd(amount: Decimal | None) -> str | None: ...


def usd(amount: Decimal | None) -> str | None:
    """Format an amount in dollars for people and the API, as `dollars` does for units."""
    if amount is None:
        return None
    # Amounts from columns have four decimals. Formatting these directly takes a sixth of the time
    # of a conversion to units.
    if amount and amount.same_quantum(_QUANTUM):
        text = str(amount)
        return text[:-2] + text[-2:].rstrip("0")
    return dollars(to_units(amount))


def percent(bp: int) -> str:
    """Format basis points for people, with as few decimals as possible: 250 is 2.5%."""
    return f"{Decimal(bp).scaleb(-2).normalize():f}%"


def dollars(units: int) -> str:
    """Format an amount for people and the API: at least two decimals, further decimals only if they
    are not zero.
    """
    whole = f"{Decimal(units).scaleb(-4):f}"
    head, _, tail = whole.partition(".")
    return f"{head}.{tail[:2]}{tail[2:].rstrip('0')}"
