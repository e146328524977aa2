"""`credit_transaction` (tenant) is the append-only ledger of credits. A seller's balance is the
sum of its rows; `account.credit_balance` repeats it and changes in the same transaction.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import NOW, Base, Moment


class CreditTransaction(Base):
    """`kind` is grant or skip_wait; only charges have an idempotency key.

    The application's role may not change rows.
    """

    __tablename__ = "credit_transaction"
    __table_args__ = (
        Index(
            "uq_credit_transaction_idempotency_key",
            "seller_id",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        CheckConstraint("balance_after >= 0", name="balance_after"),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    kind: Mapped[str] = mapped_column(Text)
    amount: Mapped[int]
    balance_after: Mapped[int]
    reason: Mapped[str | None] = mapped_column(Text)
    idempotency_key: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
