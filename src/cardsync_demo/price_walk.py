"""Invents the prices of a year: a random walk for each card that ends at the prices of the demo's
inventory.

The walk of a card is always the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from random import Random
from typing import Final

# The demo's shop opened this many days ago: twelve whole months and the current one.
DAYS: Final = 396
# Prices of the last weeks exist for each day, older ones for each week.
DAILY: Final = 35
# The seller's prices follow the market at this interval of days.
REPRICED: Final = 7
_CENT: Final = Decimal("0.01")


def ages() -> Iterator[int]:
    """Yield the days, counted back from today, on which the shop's cards were observed."""
    yield from range(DAYS, DAILY, -7)
    yield from range(DAILY, -1, -1)


@cache
def _walk(sku: int) -> list[float]:
    """Return the market's factor of each day from today backwards; today's is 1."""
    chance = Random(f"cardsync demo {sku}")  # noqa: S311 - the same walk every time
    trend = chance.uniform(-0.5, 0.4) / DAYS
    noise = chance.choice((0.004, 0.008, 0.015))
    height, factors = 0.0, [1.0]
    for _ in range(DAYS):
        # The pull to the middle keeps a year's walk realistic for cards.
        height += trend + chance.gauss(0, noise) - height * 0.004
        factors.append(math.exp(height))
    return factors


def market_at(sku: int, age: int, now: Decimal) -> Decimal:
    """Return the market's amount `age` days ago, if it is `now` today."""
    return _cents(now, _walk(sku)[_seen(age)])


def price_at(sku: int, age: int, now: Decimal) -> Decimal:
    """Return the seller's price `age` days ago: it follows the market from week to week."""
    repriced = min(DAYS, -(-_seen(age) // REPRICED) * REPRICED)
    return _cents(now, _walk(sku)[repriced])


def _seen(age: int) -> int:
    """Return the age of the newest observation that is at least `age` days old."""
    if age <= DAILY:
        return age
    return min(DAYS, DAYS - (DAYS - age) // 7 * 7)


def _cents(now: Decimal, factor: float) -> Decimal:
    return max(_CENT, (now * Decimal(factor)).quantize(_CENT))
