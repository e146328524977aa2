"""Arranges the page Today: the work in groups by due time, and the line drawings of the last thirty
days. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from cardsync.platform import clock
from cardsync.shop.today.conditions import FOR_BUYERS
from cardsync.shop.today.schemas import ConditionBody, SalesBody
from cardsync.stock.cards.market_trend import DAYS, Trend, trend_of

_WEEK: Final = timedelta(days=7)


class Due(NamedTuple):
    """A group of conditions. `runs` is true for the group that is due today."""

    title: str
    runs: bool
    work: list[ConditionBody]


def by_due(conditions: Sequence[ConditionBody], now: datetime, zone: str) -> list[Due]:
    """Return the groups that are not empty. In each group, work for which a buyer waits is first;
    the rest is ordered by money. Bad conditions without a deadline are due today.
    """
    local = ZoneInfo(zone)
    today = now.astimezone(local).date()
    groups = {
        0: Due("Due today", True, []),
        1: Due("This week", False, []),
        2: Due("Anytime", False, []),
    }
    for one in conditions:
        deadline = clock.read_moment(one.deadline) if one.deadline else None
        day = deadline.astimezone(local).date() if deadline else None
        groups[_place(one, day, today)].work.append(one)
    for group in groups.values():
        group.work.sort(key=lambda one: (one.kind not in FOR_BUYERS, -Decimal(one.money or 0)))
    return [group for group in groups.values() if group.work]


def first_of(groups: Sequence[Due]) -> ConditionBody | None:
    """Return the work for the page's primary button: the first work for which a buyer waits, else
    the first work of all groups.
    """
    work = [one for group in groups for one in group.work]
    return next((one for one in work if one.kind in FOR_BUYERS), work[0] if work else None)


def _place(one: ConditionBody, day: date | None, today: date) -> int:
    if one.severity == "bad" or (day is not None and day <= today):
        return 0
    if day is not None:
        return 1 if day <= today + _WEEK else 2
    return 1 if one.severity == "warn" else 2


def line_of(amounts: Iterable[tuple[date, Decimal]], today: date) -> Trend | None:
    """Draw a line through the amounts of the last `DAYS` days, which are ordered by day. Return
    None for fewer than two days.
    """
    known = [((today - day).days, amount) for day, amount in amounts if (today - day).days < DAYS]
    return trend_of(known) if len(known) > 1 else None


def week_before(sales: SalesBody) -> str | None:
    """Return the sales of the same weekday a week ago; None if that day is before the first
    sale.
    """
    that = sales.day - timedelta(days=7)
    return next((one.gross for one in sales.days if one.day == that), None)
