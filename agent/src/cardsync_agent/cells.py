"""Parses the dates, amounts and numbers in cells of the marketplace's order files. Pure."""

from __future__ import annotations

import re
from datetime import date

from cardsync_agent.table_text import typed_day, typed_number, typed_whole

_MONEY = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
# The server accepts the same years: any other year is a typing error.
_YEARS = range(1990, 2080)


def read_date(text: str) -> date | None:
    """Parse a day as `typed_day` does, in a plausible year."""
    day = typed_day(text)
    return day if day is not None and day.year in _YEARS else None


def read_amount(text: str, decimal: str = ".") -> str | None:
    """Convert `$1,234.50` to `1234.50`, `($5.00)` to `-5.00`; return None for any text that is not
    an amount of at most 8 digits and 4 decimals.
    """
    plain = typed_number(text, decimal)
    if not _MONEY.fullmatch(plain):
        return None
    whole, _, decimals = plain.removeprefix("-").partition(".")
    fits = len(whole.lstrip("0")) <= 8 and len(decimals.rstrip("0")) <= 4
    return plain if fits else None


def read_whole(text: str, decimal: str = ".") -> int | None:
    try:
        number = typed_whole(text, decimal)
    except ValueError:
        return None
    return number if number < 10**18 else None
