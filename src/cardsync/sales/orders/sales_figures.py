"""Sums days of sales into periods, with the net after fees. Pure.

Fees are known once the marketplace's report of the month is here. A period with a day whose month
has no report has no fees and no net, and the month is listed as a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal, NamedTuple

By = Literal["day", "week", "month"]


class Day(NamedTuple):
    """The sums of the orders of a day; a refund counts on the day of its order, and the fees are
    those of its orders as their profit has them.
    """

    day: date
    orders: int
    gross: Decimal
    refunded_orders: int
    refunds: Decimal
    fees: Decimal = Decimal(0)


class Period(NamedTuple):
    """`start` is the first day: of the week a Monday, of the month the first."""

    start: date
    orders: int
    gross: Decimal
    refunded_orders: int
    refunds: Decimal
    fees: Decimal | None
    net: Decimal | None


class Figures(NamedTuple):
    """`gaps` holds the first days of the months with orders and without a report."""

    periods: list[Period]
    total: Period | None
    fee_rate: Decimal | None
    gaps: list[date]


def figures(days: Sequence[Day], reported: Collection[date], by: By) -> Figures:
    """Return the periods that have orders, oldest first; `reported` has the months' first days."""
    grouped: dict[date, list[Day]] = {}
    for day in sorted(days):
        grouped.setdefault(start_of(day.day, by), []).append(day)
    periods = [_period(start, group, reported) for start, group in grouped.items()]
    total = _period(min(grouped), days, reported) if grouped else None
    months = {day.day.replace(day=1) for day in days}
    gaps = sorted(month for month in months if month not in reported)
    rate = None
    if total is not None and total.fees is not None and total.gross:
        rate = (total.fees / total.gross).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return Figures(periods, total, rate, gaps)


def start_of(day: date, by: By) -> date:
    if by == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if by == "week" else day


def _period(start: date, days: Iterable[Day], reported: Collection[date]) -> Period:
    group = list(days)
    gross = sum((day.gross for day in group), Decimal(0))
    refunds = sum((day.refunds for day in group), Decimal(0))
    fees: Decimal | None = None
    if all(day.day.replace(day=1) in reported for day in group):
        fees = sum((day.fees for day in group), Decimal(0))
    return Period(
        start,
        sum(day.orders for day in group),
        gross,
        sum(day.refunded_orders for day in group),
        refunds,
        fees,
        None if fees is None else gross - refunds - fees,
    )
