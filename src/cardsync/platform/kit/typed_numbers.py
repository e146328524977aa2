"""Reads the numbers that people type into forms, addresses and cells; each caller refuses in its
own words what is none.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from cardsync.platform import money
from cardsync.platform.table_text import typed_number

# 18 digits fit PostgreSQL's bigint.
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")


def whole(text: str, most: int | None = None, least: int = 0) -> int | None:
    """Return a whole number within its bounds; only one with a bound below zero has a sign."""
    if not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if least <= number and (most is None or number <= most) else None


def clamped(text: str | None, default: int, most: int, least: int = 1) -> int:
    """Return the number of a query, brought into its bounds; the default where it is none."""
    try:
        return max(least, min(most, int(text or "")))
    except ValueError:
        return default


def amount(text: str, decimal: str = ".") -> Decimal | None:
    """Return an amount like $1,234.50, 1.234,50 or (1.50), which is below zero."""
    try:
        return money.read_amount(typed_number(text, decimal))
    except ValueError:
        return None
