"""Draws the market prices of a page's cards over 30 days, one line per card, with one query for
all.

An observed price applies until the next observation, so a day without an observation has the price
of the day before. A line begins with the first known price.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Reading

DAYS: Final = 30
# The size of the drawing in SVG units. The line's distance from the top and the bottom is at least
# `_EDGE`.
WIDTH: Final = 84
HEIGHT: Final = 20
_EDGE: Final = 2
# `observed_prices` reads the table `price_observation` and, for the newest price, the card's row.
_OBSERVED: Final = queries_of(__package__)["observed_prices"]


class Trend(NamedTuple):
    """A card's line: the points of an SVG polyline from the oldest day to today, in a box of 84 by
    20, and the first and the last price.
    """

    points: str
    first: Decimal
    last: Decimal


async def market_trends(
    reading: Reading, caller: Caller, ids: Sequence[int], now: datetime
) -> dict[int, Trend]:
    """Return the lines by card id; a card whose first known price is of today has no line."""
    if not ids:
        return {}
    values = {
        "seller": caller.seller_id,
        "ids": list(ids),
        "now": now,
        "since": now - timedelta(days=DAYS),
    }
    by_card: dict[int, list[tuple[int, Decimal | None]]] = {}
    for card_id, day, market in await reading.rows(_OBSERVED, values):
        by_card.setdefault(card_id, []).append((day, market))
    drawn = ((card_id, trend_of(days)) for card_id, days in by_card.items())
    return {card_id: trend for card_id, trend in drawn if trend is not None}


def trend_of(observed: Iterable[tuple[int, Decimal | None]]) -> Trend | None:
    """Draw a card's line from its last price of each day. `observed` has pairs of days ago and
    price, the oldest first. Pure.
    """
    known = [(min(max(ago, 0), DAYS - 1), price) for ago, price in observed if price is not None]
    if not known:
        return None
    at = dict(known)
    days = range(known[0][0], -1, -1)
    prices, held = list[Decimal](), known[0][1]
    for ago in days:
        held = at.get(ago, held)
        prices.append(held)
    if len(prices) < 2:
        return None
    low, high = min(prices), max(prices)
    points = (
        f"{_across(ago)},{_down(price, low, high)}" for ago, price in zip(days, prices, strict=True)
    )
    return Trend(" ".join(points), prices[0], prices[-1])


def _across(ago: int) -> int:
    return (DAYS - 1 - ago) * WIDTH // (DAYS - 1)


def _down(price: Decimal, low: Decimal, high: Decimal) -> int:
    if low == high:
        return HEIGHT // 2
    return _EDGE + round((high - price) / (high - low) * (HEIGHT - 2 * _EDGE))
