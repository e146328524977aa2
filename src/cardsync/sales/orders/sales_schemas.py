"""The JSON structs of sales reports. Pure."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

import msgspec

from cardsync.platform.kit.struct_rows import Column, OfRow, Reads, struct_of
from cardsync.sales.orders.schemas import Amount

_Month = Annotated[str, Reads(lambda first: f"{first:%Y-%m}")]


class ReportStored(msgspec.Struct, omit_defaults=True):
    """`empty`: the report had no revenue.

    `ignored` names the fields that were not valid numbers and count as absent.
    """

    status: Literal["ok"]
    """Always ok"""
    month: _Month
    empty: bool = False
    """The report had no revenue"""
    ignored: Annotated[list[str], Column("unusable")] = []
    """Fields that were not valid numbers and count as absent"""


class ReportFields(msgspec.Struct):
    """Amounts in USD as strings, with their uploaded scale."""

    gross_sales: Amount | None
    order_count: int | None
    product_amount: Amount | None
    total_fees: Amount | None
    shipping_amount: Amount | None
    total_refund_amount: Amount | None
    refunded_orders: int | None
    refunded_fees: Amount | None
    adjustments: Amount | None
    net_sales_minus_fees: Amount | None
    net_sales: Amount | None


_Report = Annotated[ReportFields, OfRow(lambda row: struct_of(ReportFields, row))]


class MonthReport(msgspec.Struct):
    month: _Month
    date_from: Annotated[date, Column("month")]
    date_to: date
    report: _Report
    """The figures of the report"""
    received_at: datetime


class MonthReports(msgspec.Struct):
    reports: list[MonthReport]
    """The stored months"""


class Gaps(msgspec.Struct):
    gaps: list[date]
