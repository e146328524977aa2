"""The tables of store credit: `buying_customer`, the customers who sell cards to the shop, and
`store_credit_entry`, the append-only ledger. `buying_customer.credit_balance` is the sum of a
customer's entries.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId

Kind = Literal["offer", "spent", "added", "taken_back"]


class BuyingCustomer(Base):
    """A customer who sells cards to the shop. `credit_balance` changes in the statement that adds
    an entry to the ledger.
    """

    __tablename__ = "buying_customer"
    __table_args__ = (CheckConstraint("credit_balance >= 0", name="credit_balance"),)
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    contact: Mapped[str] = mapped_column(server_default="")
    credit_balance: Mapped[Decimal] = mapped_column(server_default="0")
    created_by: Mapped[str]
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]


class StoreCreditEntry(Base):
    """A change of a customer's credit. `amount` is negative if credit is spent. The database role
    of the service may not change rows.
    """

    __tablename__ = "store_credit_entry"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "customer_id"],
            ["buying_customer.seller_id", "buying_customer.id"],
        ),
        Index("ix_store_credit_entry_customer", "seller_id", "customer_id", text("id DESC")),
        Index(
            "uq_store_credit_entry_key",
            "seller_id",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        Index(
            "uq_store_credit_entry_takes_back",
            "seller_id",
            "takes_back",
            unique=True,
            postgresql_where=text("takes_back IS NOT NULL"),
        ),
        CheckConstraint("balance_after >= 0", name="balance_after"),
        CheckConstraint("amount <> 0", name="amount"),
        CheckConstraint("kind IN ('offer', 'spent', 'added', 'taken_back')", name="kind"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    customer_id: Mapped[BigInt]
    kind: Mapped[Kind] = mapped_column(Text)
    amount: Mapped[Decimal]
    balance_after: Mapped[Decimal]
    offer_id: Mapped[BigInt | None]
    # The entry that this entry reverses.
    takes_back: Mapped[BigInt | None]
    reason: Mapped[str] = mapped_column(server_default="")
    idempotency_key: Mapped[str | None]
    created_by: Mapped[str]
    created_at: Mapped[DefaultNow]
