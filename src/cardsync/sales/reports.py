"""Functions for reports of sales, profit or fees over a range of days: the range, the parameters of
the report's SQL, and sums by week or month.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple

from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.value_types import Values
from cardsync.web.request import ApiRequest, provide_caller, reading

USUAL_DAYS = 30

# The summed columns of a report.
Sum = TupleRow
Found = TypeVar("Found")
By = TypeVarTuple("By")


async def read_report(
    request: ApiRequest,
    report: Callable[[Reading, Caller, date, date, *By], Awaitable[Found]],
    first: date | None,
    last: date | None,
    *by: *By,
) -> Found:
    """Read a report about the days from `first` to `last`."""
    caller = provide_caller(request)
    span = span_of(caller, first, last, clock.now())
    async with reading(request) as reads:
        return await report(reads, caller, *span, *by)


def span_of(
    caller: Caller,
    first: date | None,
    last: date | None,
    now: datetime,
    days: int = USUAL_DAYS,
) -> tuple[date, date]:
    """Return the first and last day of a report: by default, the last `days` days."""
    until = last or caller.today(now)
    return first or until - timedelta(days=days - 1), until


def span_values(caller: Caller, first: date, last: date, most: int) -> Values:
    """Return the SQL parameters of a range of days. Raises OwnerRequired, and InvalidPayload if
    `first` is after `last`, or the range has more than `most` days.
    """
    caller.must_see_revenue()
    if first > last:
        raise errors.InvalidPayload("from: must not be after to")
    if (last - first).days >= most:
        raise errors.InvalidPayload(f"from, to: at most {most} days at a time; choose fewer")
    return {
        "seller": caller.seller_id,
        "zone": caller.account.time_zone,
        "first": first,
        "last": last,
        "first_read": first - timedelta(days=1),
        "last_read": last + timedelta(days=1),
    }


def summed(rows: Iterable[Sequence[object]], by: str = "") -> dict[Any, Sum]:
    """Sum the rows with the same first value. If the first values are days, `by` may be `week` or
    `month`, to sum the rows of each week or month. Pure.
    """
    groups: dict[object, list[Sequence[object]]] = {}
    for row in rows:
        groups.setdefault(start_of(row[0], by), []).append(row[1:])
    return {key: total(group) for key, group in groups.items()}


def total(rows: Iterable[Sequence[object]]) -> Sum:
    """Return the sum of each column. Pure."""
    return tuple(sum(column[1:], column[0]) for column in zip(*rows, strict=True))


def start_of(day: Any, by: str) -> Any:
    """Return the first day of the day's week or month; for any other `by`, `day` unchanged."""
    if by == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if by == "week" else day
