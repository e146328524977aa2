"""Parses sales summaries into monthly sales reports, and chooses the months that the server lacks.
Pure.

No public sample of the marketplace's file exists. This module expects columns with the names of the
upload's fields, and a row for each month.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from cardsync_agent.cells import read_amount, read_date
from cardsync_agent.csv_records import Problem, Record, lines_of, records
from cardsync_agent.file_kinds import column
from cardsync_agent.orders import Row, is_known

MOST_MONTHS = 2  # in one cycle
# A month that the marketplace did not offer is asked for again after this time.
ASK_AGAIN = timedelta(days=30)
_AMOUNTS = (
    "gross_sales", "product_amount", "total_fees", "shipping_amount", "total_refund_amount",
    "refunded_fees", "adjustments", "net_sales_minus_fees", "net_sales",
)  # fmt: skip
_COUNTS = ("order_count", "refunded_orders")


@dataclass
class Summary:
    """`months` maps the month's first day (ISO) to a body of POST /sales_report."""

    months: dict[str, Row] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def parse_summary(content: bytes) -> Summary:
    """Parse the bytes of a sales summary. Raises Damaged."""
    summary = Summary()
    for record in records(lines_of(content, is_known)):
        if isinstance(record, Problem):
            summary.problems.append(record)
            continue
        if report := _report(record, summary.problems):
            summary.months[report["date_from"]] = report
    return summary


def months_to_send(gaps: Iterable[str], months: Mapping[str, Row]) -> list[str]:
    """Return the months to send, oldest first and at most MOST_MONTHS. A report that ends before
    the end of its month is last.
    """

    def order(month: str) -> tuple[bool, str]:
        return months[month]["date_to"] != _last_day(date.fromisoformat(month)).isoformat(), month

    return sorted(set(gaps) & set(months), key=order)[:MOST_MONTHS]


def months_to_ask(gaps: Iterable[str], unoffered: Mapping[str, str], today: date) -> list[str]:
    """Return the months to ask the marketplace for, oldest first and at most MOST_MONTHS, without
    those that it did not offer. `unoffered` maps these to the day when they were asked for.
    """
    left = set(gaps) - still_unoffered(unoffered, today).keys()
    return sorted(left)[:MOST_MONTHS]


def still_unoffered(unoffered: Mapping[str, str], today: date) -> dict[str, str]:
    """Return the months that the marketplace did not offer within the last ASK_AGAIN."""
    since = (today - ASK_AGAIN).isoformat()
    return {month: day for month, day in unoffered.items() if day > since}


def _last_day(first: date) -> date:
    return first.replace(day=calendar.monthrange(first.year, first.month)[1])


def _report(record: Record, problems: list[Problem]) -> Row | None:
    begins, ends = read_date(record.get("datefrom")), read_date(record.get("dateto"))
    if begins is None or begins.day != 1:
        problems.append(Problem(record.line, "date_from is not the first day of a month"))
        return None
    if record.get("dateto") and (
        ends is None or (ends.year, ends.month) != (begins.year, begins.month)
    ):
        problems.append(Problem(record.line, "date_to is not in the month of date_from"))
        return None
    ends = ends or _last_day(begins)
    return {
        "date_from": begins.isoformat(),
        "date_to": ends.isoformat(),
        "report": _fields(record, problems),
    }


def _fields(record: Record, problems: list[Problem]) -> Row:
    report: Row = {}
    for name in (*_AMOUNTS, *_COUNTS):
        text = record.get(column(name))
        value = read_amount(text, record.decimal)
        if value is not None and not (name in _COUNTS and not value.isdigit()):
            report[name] = int(value) if name in _COUNTS else value
        elif text:
            problems.append(
                Problem(
                    record.line,
                    f"{name} is no {'count' if name in _COUNTS else 'amount'}; sent without",
                )
            )
    return report
