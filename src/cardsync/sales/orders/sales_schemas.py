"""The JSON structs of sales reports, and the functions that fill them. Pure."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

import msgspec

from cardsync.platform import clock
from cardsync.sales.orders import sales_reports
from cardsync.sales.orders.models import SalesReport
from cardsync.sales.orders.schemas import money


class ReportStored(msgspec.Struct, omit_defaults=True):
    """`empty`: the report had no revenue.

    `ignored` names fields that were no such number and count as absent.
    """

    status: Literal["ok"]
    """Always ok"""
    month: str
    empty: bool = False
    """The report had no revenue"""
    ignored: list[str] = []
    """Fields that were no number and count as absent"""


class ReportFields(msgspec.Struct):
    """USD as strings, with the scale they came with."""

    gross_sales: str | None
    order_count: int | None
    product_amount: str | None
    total_fees: str | None
    shipping_amount: str | None
    total_refund_amount: str | None
    refunded_orders: int | None
    refunded_fees: str | None
    adjustments: str | None
    net_sales_minus_fees: str | None
    net_sales: str | None


class MonthReport(msgspec.Struct):
    month: str
    date_from: date
    date_to: date
    report: ReportFields
    """The figures of the report"""
    received_at: str


class MonthReports(msgspec.Struct):
    reports: list[MonthReport]
    """The stored months"""


class Gaps(msgspec.Struct):
    gaps: list[date]


def report_stored(report: sales_reports.Report) -> ReportStored:
    return ReportStored("ok", f"{report.month:%Y-%m}", report.empty, report.unusable)


def month_reports(rows: list[SalesReport]) -> MonthReports:
    return MonthReports([_month_report(row) for row in rows])


def _month_report(row: SalesReport) -> MonthReport:
    amounts: dict[str, Any] = {name: money(getattr(row, name)) for name in sales_reports.AMOUNTS}
    fields = ReportFields(**amounts, **{name: getattr(row, name) for name in sales_reports.COUNTS})
    return MonthReport(
        f"{row.month:%Y-%m}",
        row.month,
        row.date_to,
        fields,
        clock.rfc3339(row.received_at),
    )
