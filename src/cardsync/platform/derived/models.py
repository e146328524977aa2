"""Tables of figures that take a scan to compute, stored so that reading them scans nothing:
`listed_value` (a row per product line and day), `shop_figures` (a row per seller), and the sums of
`sales_by_day.py`: `sales_sum`, `sales_game` and `sales_pace`, with the stored days and the outdated
days.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import Date, Index, Numeric
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, KeyPart, RowId
from cardsync.platform.value_types import JsonObject

Sum = Numeric(20, 4)


class ListedValue(Base):
    """The value of a product line's stock on a day of the account's zone, as last computed on that
    day.
    """

    __tablename__ = "listed_value"
    seller_id: Mapped[KeyPart]
    product_line: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    cards: Mapped[int]
    copies: Mapped[BigInt]
    listed: Mapped[Decimal] = mapped_column(Sum)
    # The value of the same copies at market price; a card without a market price counts at its own
    # price.
    market: Mapped[Decimal] = mapped_column(Sum)
    seen_at: Mapped[datetime]


class ShopFigures(Base):
    """The figures of the stock after the last import or pricing run."""

    __tablename__ = "shop_figures"
    seller_id: Mapped[KeyPart]
    seen_at: Mapped[datetime]
    # Cards whose price is held: their number, their listed value, and the time of the oldest hold.
    held: Mapped[int]
    held_value: Mapped[Decimal] = mapped_column(Sum)
    held_since: Mapped[datetime | None]
    # Cards that left the stock in the last days without a sale.
    dropped: Mapped[int]
    dropped_value: Mapped[Decimal] = mapped_column(Sum)
    dropped_since: Mapped[datetime | None]
    # Cards whose target differs from their price, and the sum of the differences.
    asked: Mapped[int]
    asked_value: Mapped[Decimal] = mapped_column(Sum)
    asked_since: Mapped[datetime | None]
    # The last completed pricing run: how many cards it prices higher and lower than listed, and the
    # sums of both differences.
    run_id: Mapped[BigInt | None]
    rises: Mapped[int]
    rises_value: Mapped[Decimal] = mapped_column(Sum)
    falls: Mapped[int]
    falls_value: Mapped[Decimal] = mapped_column(Sum)
    # For each number of days, the cards whose price moved most: [card, price before, price after]
    # in ten-thousandths of a dollar.
    movers: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    movers_at: Mapped[datetime | None]


class SalesStale(Base):
    """A day of orders whose sums are outdated. Rows are only added and removed, so writers do not
    wait for each other.
    """

    __tablename__ = "sales_stale"
    __table_args__ = (Index("ix_sales_stale_ordered", "seller_id", "ordered"),)
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    ordered: Mapped[date] = mapped_column(Date)


class SalesKept(Base):
    """A day of orders whose sums are stored, with the zone of the account's days."""

    __tablename__ = "sales_kept"
    seller_id: Mapped[KeyPart]
    ordered: Mapped[date] = mapped_column(Date, primary_key=True)
    zone: Mapped[str]
    kept_at: Mapped[datetime]


class SalesSum(Base):
    __tablename__ = "sales_sum"
    seller_id: Mapped[KeyPart]
    ordered: Mapped[date] = mapped_column(Date, primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    orders: Mapped[BigInt]
    gross: Mapped[Decimal] = mapped_column(Numeric)
    refunded: Mapped[BigInt]
    refunds: Mapped[Decimal] = mapped_column(Numeric)


class SalesGame(Base):
    __tablename__ = "sales_game"
    seller_id: Mapped[KeyPart]
    ordered: Mapped[date] = mapped_column(Date, primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    game: Mapped[str] = mapped_column(primary_key=True)
    orders: Mapped[BigInt]
    pieces: Mapped[BigInt]
    # `gross` is null if no price is known. For `estimated` pieces it includes a share of their
    # order's product total; it does not include `unpriced` pieces.
    gross: Mapped[Decimal | None] = mapped_column(Numeric)
    estimated: Mapped[BigInt]
    unpriced: Mapped[BigInt]


class SalesPace(Base):
    """The number of a day's items by the days since their card was first seen."""

    __tablename__ = "sales_pace"
    seller_id: Mapped[KeyPart]
    ordered: Mapped[date] = mapped_column(Date, primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    game: Mapped[str] = mapped_column(primary_key=True)
    days: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    items: Mapped[BigInt]
