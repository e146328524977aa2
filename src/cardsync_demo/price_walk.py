"""Invents prices of a year: a random walk for each card, which ends at the price in the demo's
inventory.

A card's walk is the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from random import Random
from typing import Final

# The number of days since the demo's shop opened: twelve whole months and the current one.
DAYS: Final = 396
# There are daily prices for this number of days, and weekly prices before.
DAILY: Final = 35
# The number of days after which the seller's prices follow the market.
REPRICED: Final = 7
_CENT: Final = Decimal("0.01")


def ages() -> Iterator[int]:
    """Yield the ages in days of the observations of the shop's cards, the oldest first."""
    yield from range(DAYS, DAILY, -7)
    yield from range(DAILY, -1, -1)


@cache
def _walk(sku: int) -> list[float]:
    """Return the market's factor for each day, from today (1) backwards."""
    chance = Random(f"cardsync demo {sku}")  # noqa: S311 - the same walk every time
    trend = chance.uniform(-0.5, 0.4) / DAYS
    noise = chance.choice((0.004, 0.008, 0.015))
    height, factors = 0.0, [1.0]
    for _ in range(DAYS):
        # The pull toward the middle keeps a year's walk realistic for a card.
        height += trend + chance.gauss(0, noise) - height * 0.004
        factors.append(math.exp(height))
    return factors


def market_at(sku: int, age: int, now: Decimal) -> Decimal:
    """Return the market's amount `age` days ago, if it is `now` today."""
    return _cents(now, _walk(sku)[_seen(age)])


def price_at(sku: int, age: int, now: Decimal) -> Decimal:
    """Return the seller's price `age` days ago. It follows the market once a week."""
    repriced = min(DAYS, -(-_seen(age) // REPRICED) * REPRICED)
    return _cents(now, _walk(sku)[repriced])


def _seen(age: int) -> int:
    """Return the age of the newest observation that is at least `age` days old."""
    if age <= DAILY:
        return age
    return min(DAYS, DAYS - (DAYS - age) // 7 * 7)


def _cents(now: Decimal, factor: float) -> Decimal:
    return max(_CENT, (now * Decimal(factor)).quantize(_CENT))
