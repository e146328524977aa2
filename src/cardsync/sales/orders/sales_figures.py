"""Sums days of sales into periods, with the net after fees. Pure.

Fees are known once the marketplace's report of the month is here. A period with a day whose month
has no report has no fees and no net, and the month is listed as a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

from cardsync.sales.reports import Sum, start_of, summed, total


class Period(NamedTuple):
    """`start` is the first day: of the week a Monday, of the month the first; None of the total. A
    refund counts on the day of its order.
    """

    start: date | None
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


def figures(days: Sequence[tuple[Any, ...]], reported: Collection[date], by: str) -> Figures:
    """Return the periods that have orders, oldest first. Of each day come the figures of a period
    until `fees`, which are those of its orders as their profit has them; `reported` has the months'
    first days.
    """
    unreported = {day for day, *_ in days if start_of(day, "month") not in reported}
    hidden = {start_of(day, by) for day in unreported}
    periods = [_period(start, sums, hidden) for start, sums in summed(sorted(days), by).items()]
    whole = _period(None, total([row[1:] for row in days]), unreported and {None}) if days else None
    rate = None
    if whole is not None and whole.fees is not None and whole.gross:
        rate = (whole.fees / whole.gross).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return Figures(periods, whole, rate, sorted({start_of(day, "month") for day in unreported}))


def _period(start: date | None, sums: Sum, hidden: Collection[date | None]) -> Period:
    orders, gross, refunded, refunds, fees = sums
    if start in hidden:
        return Period(start, orders, gross, refunded, refunds, None, None)
    return Period(start, orders, gross, refunded, refunds, fees, gross - refunds - fees)
