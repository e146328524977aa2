"""Tenant tables for the cost and profit of cards: `lot`, `lot_file`, `lot_use`, `lot_stale`,
`order_payment`, and the derived `card_cost` and `profit_sum`.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Date,
    Index,
    LargeBinary,
    Numeric,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId

Source = Literal["offer", "file", "hand"]
Cost = Numeric(12, 2)


class LotFile(Base):
    """A file whose rows became lots. `sha256` identifies a repeated file."""

    __tablename__ = "lot_file"
    __table_args__ = (Index("uq_lot_file_sha256", "seller_id", "sha256", unique=True),)
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    sha256: Mapped[bytes] = mapped_column(LargeBinary)
    lots: Mapped[int]
    created_at: Mapped[DefaultNow]


class Lot(Base):
    """Copies of a card that were bought together. `cost` is per copy; null is unknown.

    `source_id` is the id of the offer or file; `rule_id` is the buy rule that set the cost.
    """

    __tablename__ = "lot"
    __table_args__ = (
        Index("ix_lot_card", "seller_id", "marketplace_id", "bought_on", "id"),
        Index(
            "ix_lot_rule",
            "seller_id",
            "rule_id",
            postgresql_where=text("rule_id IS NOT NULL"),
        ),
        CheckConstraint("quantity >= 1", name="quantity"),
        CheckConstraint("remaining BETWEEN 0 AND quantity", name="remaining"),
        CheckConstraint("cost >= 0", name="cost"),
        CheckConstraint("source IN ('offer', 'file', 'hand')", name="source"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    marketplace_id: Mapped[BigInt]
    quantity: Mapped[int]
    remaining: Mapped[int]
    cost: Mapped[Decimal | None] = mapped_column(Cost)
    bought_on: Mapped[date] = mapped_column(Date)
    source: Mapped[Source] = mapped_column(Text)
    source_id: Mapped[BigInt | None]
    rule_id: Mapped[BigInt | None]
    created_at: Mapped[DefaultNow]


class LotUse(Base):
    """The copies that an order item took from a lot, and the copies that it gave back after a
    cancellation, refund or return. `cost` is per copy, by the seller's costing method; null is
    unknown.

    The table has no foreign key to `lot`, which would check each of a million derived rows again.
    The key is not needed, because a refresh locks the lots against removal.
    """

    __tablename__ = "lot_use"
    __table_args__ = (
        Index("ix_lot_use_lot", "seller_id", "lot_id"),
        CheckConstraint("taken >= 1", name="taken"),
        CheckConstraint("given_back BETWEEN 0 AND taken", name="given_back"),
    )
    seller_id: Mapped[KeyPart]
    item_id: Mapped[KeyPart]
    lot_id: Mapped[KeyPart]
    taken: Mapped[int]
    given_back: Mapped[int] = mapped_column(server_default="0")
    cost: Mapped[Decimal | None] = mapped_column(Numeric(14, 4))


class CardCost(Base):
    """Sums of each card's remaining copies in lots: all copies, the copies with a known cost, their
    average cost, and the date of the oldest lot.
    """

    __tablename__ = "card_cost"
    seller_id: Mapped[KeyPart]
    marketplace_id: Mapped[KeyPart]
    copies: Mapped[BigInt]
    known: Mapped[BigInt]
    cost: Mapped[Decimal | None] = mapped_column(Numeric(14, 4))
    oldest: Mapped[date] = mapped_column(Date)


class LotStale(Base):
    """A card whose `lot_use` rows and cost are outdated. Rows are inserted and deleted, but never
    updated, so writers do not wait for each other.
    """

    __tablename__ = "lot_stale"
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    marketplace_id: Mapped[BigInt]


class OrderPayment(Base):
    """The fees of an order, from the marketplace's payments report."""

    __tablename__ = "order_payment"
    seller_id: Mapped[KeyPart]
    order_number: Mapped[str] = mapped_column(primary_key=True)
    paid_on: Mapped[date | None] = mapped_column(Date)
    amount: Mapped[Decimal | None]
    fees: Mapped[Decimal]
    received_at: Mapped[datetime]


class ProfitSum(Base):
    """Sums of the profit of a day, game and pricing rule; `SalesGame` has the sums of sales.
    `costed` counts the copies with a known cost; `cost`, the `counted_` amounts and `profit` are
    sums over these copies only. `bare` counts orders without items. `estimated` is the part of the
    fees that no report contains yet. `rule_id` is 0 if no rule set the price, and -1 if the rule is
    unknown.
    """

    __tablename__ = "profit_sum"
    seller_id: Mapped[KeyPart]
    ordered: Mapped[date] = mapped_column(Date, primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    game: Mapped[str] = mapped_column(primary_key=True)
    rule_id: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=False, server_default="-1"
    )
    pieces: Mapped[BigInt]
    costed: Mapped[BigInt]
    bare: Mapped[int] = mapped_column(BigInteger, server_default="0")
    received: Mapped[Decimal] = mapped_column(Numeric)
    fees: Mapped[Decimal] = mapped_column(Numeric)
    estimated: Mapped[Decimal] = mapped_column(Numeric, server_default="0")
    postage: Mapped[Decimal] = mapped_column(Numeric)
    cost: Mapped[Decimal] = mapped_column(Numeric)
    counted_received: Mapped[Decimal] = mapped_column(Numeric, server_default="0")
    counted_fees: Mapped[Decimal] = mapped_column(Numeric, server_default="0")
    counted_postage: Mapped[Decimal] = mapped_column(Numeric, server_default="0")
    profit: Mapped[Decimal] = mapped_column(Numeric)
