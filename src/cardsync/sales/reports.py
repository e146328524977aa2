"""Reads a report of sales, profit or fees over some days of an account: the days, the values that
its SQL names, and the sums of its days by week or month.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.web.request import ApiRequest, provide_caller, reading

USUAL_DAYS = 30

# The values of the columns of a report.
Sum = tuple[Any, ...]
Found = TypeVar("Found")
By = TypeVarTuple("By")


async def read_report(
    request: ApiRequest,
    report: Callable[[Reading, Caller, date, date, *By], Awaitable[Found]],
    first: date | None,
    last: date | None,
    *by: *By,
) -> Found:
    """Read a report over the requested days."""
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
    """Return the requested days: by default, so many until today."""
    until = last or caller.today(now)
    return first or until - timedelta(days=days - 1), until


def span_values(caller: Caller, first: date, last: date, most: int) -> dict[str, Any]:
    """Return the values of a span of at most so many days. Raises OwnerRequired, and InvalidPayload
    for a span that ends before it begins, or is too long.
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


def summed(rows: Iterable[Sequence[Any]], by: str = "") -> dict[Any, Sum]:
    """Sum the rows by their first value; days also by `week` or `month`. Pure."""
    groups: dict[Any, list[Sequence[Any]]] = {}
    for row in rows:
        groups.setdefault(start_of(row[0], by), []).append(row[1:])
    return {key: total(group) for key, group in groups.items()}


def total(rows: Iterable[Sequence[Any]]) -> Sum:
    """Return the sum of each column. Pure."""
    return tuple(sum(column[1:], column[0]) for column in zip(*rows, strict=True))


def start_of(day: Any, by: str) -> Any:
    """Return the first day of its week or month; by anything else the day, or the name, itself."""
    if by == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if by == "week" else day
