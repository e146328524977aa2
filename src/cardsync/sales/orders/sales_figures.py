"""Sums days of sales into periods, with the net after fees. Pure.

Fees are known only from the marketplace's report of the month. If the month of any day in a period
has no report, the period has no fees and no net, and the month is a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from psycopg.rows import TupleRow

from cardsync.sales.reports import Sum, start_of, summed, total


class Period(NamedTuple):
    """The sums of a period. `start` is its first day (a Monday for a week, the first for a month),
    or None for the total. A refund counts on the day of its order.
    """

    start: date | None
    orders: int
    gross: Decimal
    refunded_orders: int
    refunds: Decimal
    fees: Decimal | None
    net: Decimal | None


class Figures(NamedTuple):
    """Periods and their total. `gaps` lists the first day of each month that has orders and no
    report.
    """

    periods: list[Period]
    total: Period | None
    fee_rate: Decimal | None
    gaps: list[date]


def figures(days: Sequence[TupleRow], reported: Collection[date], by: str) -> Figures:
    """Return the periods that have orders, oldest first. Each row of `days` is a day and the
    figures of `Period` from `orders` to `fees`; the fees are those of the profit. `reported` is the
    first days of months with a report.
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
