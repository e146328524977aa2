"""Reads the dates, amounts and numbers in cells of the marketplace's order files. Pure."""

from __future__ import annotations

import re
from datetime import date

from cardsync_agent.table_text import typed_number, typed_whole

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_SPELLED = re.compile(r"(?:[a-z]+,\s*)?(\d{1,2}) ([a-z]+),? (\d{4})", re.IGNORECASE | re.ASCII)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?: .*)?", re.ASCII)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ].*)?", re.ASCII)
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?: .*)?", re.ASCII)
_MONEY = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
# The server has the same range: any other year is a slip of the pen.
_YEARS = range(1990, 2080)


def read_date(text: str) -> date | None:
    """Read `Friday, 03 July 2026`, `7/3/2026`, `7/3/26`, `03.07.2026` or `2026-07-03`, each with or
    without a time.
    """
    day = _read_date(text)
    return day if day is not None and day.year in _YEARS else None


def _read_date(text: str) -> date | None:
    try:
        if spelled := _SPELLED.fullmatch(text):
            return date(int(spelled[3]), _MONTHS.index(spelled[2].casefold()) + 1, int(spelled[1]))
        if slashed := _SLASHED.fullmatch(text):
            return date(
                int(slashed[3]) + 2000 * (len(slashed[3]) == 2), int(slashed[1]), int(slashed[2])
            )
        if dotted := _DOTTED.fullmatch(text):
            return date(int(dotted[3]), int(dotted[2]), int(dotted[1]))
        iso = _ISO.fullmatch(text)
        return date(int(iso[1]), int(iso[2]), int(iso[3])) if iso else None
    except ValueError:
        return None


def read_amount(text: str, decimal: str = ".") -> str | None:
    """Read `$1,234.50` as `1234.50`, `($5.00)` as `-5.00`; return None for a text that is no amount
    of at most 8 digits and 4 decimals.
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
