"""Parses the numbers that people type into forms, addresses and cells. A text that is not a number
becomes None: each caller reports it in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, cast

from cardsync.platform import limits, money
from cardsync.platform.table_text import typed_number

# PostgreSQL's bigint can store every number of 18 digits.
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_MOST: Final = 999_999_999


def whole(text: str, most: int = _MOST, least: int = 0) -> int | None:
    """Return the text's whole number; None if it is not a number or outside the bounds."""
    if not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    return number if least <= number <= most else None


def read_id(text: str) -> int | None:
    """Return an ID; a custom listing's is negative."""
    return whole(text, limits.LARGEST_ID, -limits.LARGEST_ID)


def wholes(texts: Iterable[str]) -> list[int]:
    """Return whole numbers of any size; an empty list if one of the texts is not a number."""
    numbers = [whole(text, limits.LARGEST_ID) for text in texts]
    return [] if None in numbers else cast("list[int]", numbers)


def clamped(text: str | None, default: int, most: int, least: int = 1) -> int:
    """Return the number of a query, limited to its bounds; the default if it is not a number."""
    try:
        return max(least, min(most, int(text or "")))
    except ValueError:
        return default


def amount(text: str, decimal: str = ".") -> Decimal | None:
    """Return an amount written like $1,234.50, 1.234,50 or (1.50); parentheses make it negative."""
    try:
        return money.read_amount(typed_number(text, decimal))
    except ValueError:
        return None
