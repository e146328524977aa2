"""Converts money: USD is `Decimal` at the edges and integer ten-thousandths of a dollar inside the
pricing engine, never a float.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

UNITS_PER_DOLLAR = 10_000
UNITS_PER_CENT = 100
# numeric(12,4): eight digits before the point, four behind it.
MAX_UNITS = 10**12 - 1

_QUANTUM = Decimal("0.0001")


def to_units(amount: Decimal) -> int:
    """Dollars to ten-thousandths; a fifth decimal rounds half-up."""
    return int(amount.quantize(_QUANTUM, ROUND_HALF_UP).scaleb(4))


def from_units(units: int) -> Decimal:
    """Ten-thousandths to dollars, with four decimals."""
    return Decimal(units).scaleb(-4)


def dollars_or_none(units: int | None) -> str | None:
    return None if units is None else dollars(units)


def usd(amount: Decimal | None) -> str | None:
    return None if amount is None else dollars(to_units(amount))


def percent(bp: int) -> str:
    """Basis points for people, with as few decimals as there are: 250 is 2.5%."""
    return f"{Decimal(bp).scaleb(-2).normalize():f}%"


def dollars(units: int) -> str:
    """For people and the wire: at least two decimals, further ones only where they are not zero."""
    whole = f"{Decimal(units).scaleb(-4):f}"
    head, _, tail = whole.partition(".")
    return f"{head}.{tail[:2]}{tail[2:].rstrip('0')}"
