"""Reads the numbers that people type into forms, addresses and cells. A text that is no number is
None: each caller refuses it in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, cast

from cardsync.platform import limits, money
from cardsync.platform.table_text import typed_number

# PostgreSQL's bigint holds every number of 18 digits.
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_MOST: Final = 999_999_999


def whole(text: str, most: int = _MOST, least: int = 0) -> int | None:
    """Return the whole number, if it is one within its bounds."""
    if not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if least <= number <= most else None


def read_id(text: str) -> int | None:
    """Return an id; that of a custom listing is below zero."""
    return whole(text, limits.LARGEST_ID, -limits.LARGEST_ID)


def wholes(texts: Iterable[str]) -> list[int]:
    """Return whole numbers of any size; none where one of the texts is no number."""
    numbers = [whole(text, limits.LARGEST_ID) for text in texts]
    return [] if None in numbers else cast("list[int]", numbers)


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
