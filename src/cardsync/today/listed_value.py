"""Sums the listed value of the product lines for every day. Pure.

On a day on which a line has no row it has the value of its last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from cardsync.today.queries import DayOfLine


class Day(NamedTuple):
    day: date
    cards: int
    copies: int
    listed: Decimal
    market: Decimal
    lines: dict[str, Decimal]


def by_day(since: date, rows: Iterable[DayOfLine]) -> list[Day]:
    """`rows` come by day. Days on which no line was seen are left out."""
    newest: dict[str, DayOfLine] = {}
    days: dict[date, Day] = {}
    for row in rows:
        newest[row.product_line] = row
        if row.day >= since:
            days[row.day] = _sum(row.day, newest)
    return list(days.values())


def _sum(day: date, newest: dict[str, DayOfLine]) -> Day:
    rows = [newest[line] for line in sorted(newest)]
    return Day(
        day,
        sum(row.cards for row in rows),
        sum(row.copies for row in rows),
        sum((row.listed for row in rows), Decimal()),
        sum((row.market for row in rows), Decimal()),
        {row.product_line: row.listed for row in rows if row.cards},
    )
