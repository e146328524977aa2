"""Sums up the sales of the last days. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.platform.money import usd
from cardsync.shop.today import conditions as rules
from cardsync.shop.today.schemas import (
    SalesBody,
    SoldBody,
    SoldDay,
)

# The number of days in the chart of sales.
DAYS: Final = 30


class Sold(NamedTuple):
    """The number of orders of a day, and their sum."""

    day: date
    orders: int
    gross: Decimal


def sum_sales(sold: Sequence[Sold], today: date) -> SalesBody:
    """Return the sums of this month and of the same days of the previous month, and the days of the
    chart. From the first order on, the chart also has the days without an order.
    """
    before_from, before_to = rules.same_days_before(today)
    by_day = {one.day: one for one in sold}
    begin = today - timedelta(days=DAYS - 1)
    begin = max(begin, min(by_day, default=today + timedelta(days=1)))
    days = [begin + timedelta(days=n) for n in range((today - begin).days + 1)]
    none = Sold(today, 0, Decimal())
    return SalesBody(
        today,
        _sum(sold, today, today),
        _sum(sold, today.replace(day=1), today),
        before_from,
        before_to,
        _sum(sold, before_from, before_to),
        [
            SoldDay(day, one.orders, usd(one.gross))
            for day in days
            for one in [by_day.get(day, none)]
        ],
    )


def _sum(sold: Sequence[Sold], first: date, last: date) -> SoldBody:
    those = [one for one in sold if first <= one.day <= last]
    gross = sum((one.gross for one in those), Decimal())
    return SoldBody(sum(one.orders for one in those), usd(gross))
