"""The tables of offers: `buying_offer`, a shop's offer to a customer for cards, and
`buying_offer_line`, copies of one card in an offer.

Offered values do not change. The columns `received_…` have the values of the counted cards.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId
from cardsync.platform.value_types import Json, JsonObject

State = Literal[
    "draft", "offered", "accepted", "received", "paid", "in_stock", "declined", "expired"
]
Source = Literal["hand", "collection", "buylist"]
Way = Literal["cash", "credit", "split"]
OPEN_STATES = "state IN ('draft', 'offered', 'accepted', 'received', 'paid')"


class BuyingOffer(Base):
    """A shop's offer to a customer. Each change increases `revision`. A change is refused if its
    caller has seen an older revision.
    """

    __tablename__ = "buying_offer"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "customer_id"],
            ["buying_customer.seller_id", "buying_customer.id"],
        ),
        Index("ix_buying_offer_open", "seller_id", "id", postgresql_where=text(OPEN_STATES)),
        Index("ix_buying_offer_customer", "seller_id", "customer_id"),
        CheckConstraint(
            "state IN ('draft', 'offered', 'accepted', 'received', 'paid', 'in_stock',"
            " 'declined', 'expired')",
            name="state",
        ),
        CheckConstraint("source IN ('hand', 'collection', 'buylist')", name="source"),
        CheckConstraint("way IN ('cash', 'credit', 'split')", name="way"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    revision: Mapped[int] = mapped_column(server_default="1")
    state: Mapped[State] = mapped_column(Text, server_default="draft")
    source: Mapped[Source] = mapped_column(Text, server_default="hand")
    collection_id: Mapped[BigInt | None]
    customer_id: Mapped[BigInt | None]
    note: Mapped[str] = mapped_column(server_default="")
    # `way` is cash, credit or split. In a split, `cash_part` is paid in cash and the rest in
    # credit.
    way: Mapped[Way | None] = mapped_column(Text)
    cash_part: Mapped[Decimal | None]
    paid_cash: Mapped[Decimal | None]
    paid_credit: Mapped[Decimal | None]
    # The hash of the secret in the customer's link.
    secret_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_by: Mapped[str]
    # The member who accepted or declined the offer, or `customer` if the customer did by the link.
    answered_by: Mapped[str | None]
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]
    offered_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    answered_at: Mapped[datetime | None]
    received_at: Mapped[datetime | None]
    paid_at: Mapped[datetime | None]
    stocked_at: Mapped[datetime | None]


class BuyingOfferLine(Base):
    """Copies of a card with the same price. A line without prices is not bought, for the reason
    `reason`. A line with only `cash_each` is not bought for credit, and vice versa.

    The row has the card's texts, so that a change of the catalog does not change the offer.
    """

    __tablename__ = "buying_offer_line"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "offer_id"],
            ["buying_offer.seller_id", "buying_offer.id"],
            ondelete="CASCADE",
        ),
        Index("ix_buying_offer_line_offer", "seller_id", "offer_id"),
        CheckConstraint("copies >= 1", name="copies"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    offer_id: Mapped[BigInt]
    product_id: Mapped[BigInt]
    product_line: Mapped[str]
    set_name: Mapped[str]
    product_name: Mapped[str]
    number: Mapped[str]
    rarity: Mapped[str]
    condition: Mapped[str]
    printing: Mapped[str]
    language: Mapped[str]
    copies: Mapped[int]
    cash_each: Mapped[Decimal | None]
    credit_each: Mapped[Decimal | None]
    reason: Mapped[str] = mapped_column(server_default="")
    # The reason as a code of the engine; null if the line has prices.
    reason_code: Mapped[str | None]
    # `price_of` is the finish whose price a person chose, `price_taken` the price by which the line
    # was valued, and `other_finishes` the finishes that may be chosen if the card's price is
    # unknown.
    price_of: Mapped[str | None]
    price_taken: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    other_finishes: Mapped[list[Json]] = mapped_column(JSONB, server_default="[]")
    # Basis points per condition, for cards graded differently at the counter.
    grades: Mapped[JsonObject] = mapped_column(JSONB, server_default="{}")
    by_hand: Mapped[bool] = mapped_column(server_default=text("false"))
    rule_id: Mapped[BigInt | None]
    # The copies of the card that were in stock and on order when the rule priced the line.
    held: Mapped[BigInt | None]
    explanation: Mapped[list[Json]] = mapped_column(JSONB, server_default="[]")
    accepted: Mapped[bool | None]
    received_copies: Mapped[int | None]
    received_condition: Mapped[str | None]
    received_cash_each: Mapped[Decimal | None]
    received_credit_each: Mapped[Decimal | None]
    cost_each: Mapped[Decimal | None]
    # The lot and the draft of quick-add that were made when the line was taken into stock.
    lot_id: Mapped[BigInt | None]
    quick_add_id: Mapped[BigInt | None]
