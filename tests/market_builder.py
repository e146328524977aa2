"""Rows of market evidence, as `cardsync market import` reads them: the columns are product,
condition, printing, language, price, quantity, sold_at, fetched_at and seen_at.
"""

from __future__ import annotations

from datetime import timedelta

from cardsync import clock


def ago(**span: float) -> str:
    """A moment so long before now, as RFC 3339: `ago(hours=1)`."""
    return clock.rfc3339(clock.now() - timedelta(**span))


def listing(product: int, price: str, seen: str, quantity: int = 1, condition: str = "NM") -> str:
    return f"{product},{condition},Normal,English,{price},{quantity},,,{seen}"


def sale(product: int, price: str, sold: str, fetched: str, quantity: int = 1) -> str:
    return f"{product},NM,Normal,English,{price},{quantity},{sold},{fetched},"
