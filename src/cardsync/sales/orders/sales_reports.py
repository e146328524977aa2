"""Stores the marketplace's monthly sales reports, one row per month, and finds months without a
report.

`read` and `months_without` are pure. A new report of a stored month replaces the fields that it
contains, even with null, and keeps all other fields.
"""

from __future__ import annotations

import asyncio
import calendar
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors, limits
from cardsync.platform.database.marketplace_time import MARKETPLACE_ZONE
from cardsync.platform.database.session import Database
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.derived.sales_by_day import mark_changed
from cardsync.platform.read_json import not_json
from cardsync.sales.errors import InvalidJson
from cardsync.sales.limits import SALES_REPORT_LOOKBACK_MONTHS
from cardsync.sales.lots.line_profit import RATE
from cardsync.sales.orders.cells import read_amount, read_number
from cardsync.sales.orders.models import Order, SalesReport
from cardsync.web import bodies

COUNTS = ("order_count", "refunded_orders")
REVENUE = ("gross_sales", "product_amount", "shipping_amount", "net_sales", "net_sales_minus_fees")
AMOUNTS = (*REVENUE, "total_fees", "total_refund_amount", "refunded_fees", "adjustments")

_RATE = f"SELECT {RATE} FROM sales_report r WHERE r.seller_id = :seller AND r.month = :month"
# An order's day in the account's time zone differs from its date by at most one day.
_DAYS = """
    SELECT DISTINCT order_date FROM orders
     WHERE seller_id = :seller
       AND order_date BETWEEN CAST(:month AS date) - 1 AND CAST(:end AS date) + 1
"""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LARGEST_COUNT = 2**63 - 1
# Numbers with a point or an exponent are decoded as bytes, which `cells` reads exactly.
_JSON = msgspec.json.Decoder(float_hook=str.encode)


@dataclass(frozen=True)
class Report:
    """A sales report. `fields` has the fields of the report, including nulls. `unusable` names the
    fields that count as absent because they are not valid numbers.
    """

    month: date
    date_to: date
    fields: dict[str, Decimal | int | None]
    unusable: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not any(self.fields.get(name) for name in REVENUE)


def read(body: bytes) -> Report:
    """Read a report. Raises InvalidJson or InvalidPayload, naming the field."""
    try:
        given = _JSON.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise InvalidJson(not_json(e, body)) from e
    if not isinstance(given, dict):
        raise errors.InvalidPayload("the body is not an object")
    month, date_to = (_date(given, name) for name in ("date_from", "date_to"))
    if month.day != 1:
        raise errors.InvalidPayload(f"date_from: {month} is not the first day of a month")
    if date_to.replace(day=1) != month:
        raise errors.InvalidPayload(
            f"date_to: {date_to} is not in the month of date_from, {month:%Y-%m}"
        )
    if not isinstance(report := given.get("report"), dict):
        raise errors.InvalidPayload(
            "report is missing" if report is None else "report is not an object"
        )
    readers: dict[str, Callable[[object], Decimal | int | None]] = {
        **dict.fromkeys(AMOUNTS, _amount),
        **dict.fromkeys(COUNTS, _count),
    }
    fields = {name: one(report[name]) for name, one in readers.items() if name in report}
    unusable = [
        name for name, value in fields.items() if value is None and report[name] is not None
    ]
    return Report(
        month,
        date_to,
        {name: fields[name] for name in fields.keys() - set(unusable)},
        unusable,
    )


def _date(given: Mapping[str, object], name: str) -> date:
    value = given.get(name)
    if value is None:
        raise InvalidJson(f"{name} is missing")
    try:
        if isinstance(value, str) and _DATE.fullmatch(value.strip()):
            return date.fromisoformat(value.strip())
    except ValueError:
        pass
    raise InvalidJson(f"{name} is not a date like 2026-07-31")


def _amount(value: object) -> Decimal | None:
    text = read_amount(value)
    return None if text is None else Decimal(text)


def _count(value: object) -> int | None:
    number = read_number(value)
    if number is None or not number.is_finite() or number.adjusted() > 18 or number != int(number):
        return None
    return int(number) if 0 <= number <= _LARGEST_COUNT else None


def months_without(
    covered: Collection[date],
    first_order: date | None,
    now: datetime,
) -> list[date]:
    """Return the first days of the months that no report covers, oldest first; an empty list for an
    account without dated orders.

    The first possible month is that of the first order, or 24 months ago if that is earlier. The
    last possible month is the last one that has ended in the marketplace's time zone.
    """
    if first_order is None:
        return []
    this = _months(now.astimezone(ZoneInfo(MARKETPLACE_ZONE)).date())
    begin = min(_months(first_order), this - SALES_REPORT_LOOKBACK_MONTHS)
    months = (date(number // 12, number % 12 + 1, 1) for number in range(begin, this))
    return [month for month in months if month not in covered]


def _months(day: date) -> int:
    return day.year * 12 + day.month - 1


async def receive(database: Database, caller: Caller, body: bytes, now: datetime) -> Report:
    """Read a month's report and store it. During a sync, this also extends the sync lock. Raises
    the errors of `read`.
    """
    report = await asyncio.to_thread(lambda: read(bodies.plain(body, limits.BODY_INFLATED_BYTES)))
    async with database.tenant(caller.seller_id) as session:
        if caller.state.lock_kind is not None:
            sync_state.order_data_came(await sync_state.locked(session, caller.seller_id), now)
        await store(session, caller, report, now)
        note(
            session, caller, "sales_report.received", f"sales report for {report.month:%Y-%m}", now
        )
    return report


async def store(session: AsyncSession, caller: Caller, report: Report, now: datetime) -> None:
    """Store a report; if its fee rate changes, mark the days of its month as outdated."""
    values = {"seller": caller.seller_id, "month": report.month, "end": _end_of(report.month)}
    before = await session.scalar(text(_RATE), values)
    carried = report.fields | {"date_to": report.date_to, "received_at": now}
    statement = insert(SalesReport).values(
        seller_id=caller.seller_id,
        month=report.month,
        **carried,
    )
    await session.execute(
        statement.on_conflict_do_update(index_elements=["seller_id", "month"], set_=carried),
    )
    if await session.scalar(text(_RATE), values) != before:
        await mark_changed(session, _DAYS, values)
        await mark(session, caller.seller_id, Figure.SALES_SUMS)


async def stored(session: AsyncSession, caller: Caller) -> list[SalesReport]:
    """Return every month's report, oldest first. Raises OwnerRequired."""
    caller.must_see_revenue()
    query = (
        select(SalesReport)
        .where(SalesReport.seller_id == caller.seller_id)
        .order_by(SalesReport.month)
    )
    return list(await session.scalars(query))


async def gaps(session: AsyncSession, caller: Caller, now: datetime) -> list[date]:
    """Return `months_missing` of the caller's seller."""
    return await months_missing(session, caller.seller_id, now)


async def months_missing(session: AsyncSession, seller_id: int, now: datetime) -> list[date]:
    """Return the first days of ended months without a report. A report that ends before the last
    day of its month does not count.
    """
    first_order = await session.scalar(
        select(func.min(Order.order_date)).where(Order.seller_id == seller_id)
    )
    query = select(SalesReport.month, SalesReport.date_to).where(SalesReport.seller_id == seller_id)
    rows = await session.execute(query)
    return months_without(
        {month for month, date_to in rows if is_last_day(date_to)}, first_order, now
    )


def is_last_day(day: date) -> bool:
    return day == _end_of(day)


def _end_of(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])
