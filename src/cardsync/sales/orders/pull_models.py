"""Tenant tables of pull sessions: `pull_session`, `pull_session_order`, `pull_session_item`."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Date,
    ForeignKeyConstraint,
    Index,
    Numeric,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, BigInt, KeyPart, RowId

PullState = Literal["open", "completed", "cancelled"]
# The seller's decision about a card that was not found.
MissingOutcome = Literal["found", "other_copy", "refund", "message"]
# The reason why a card was not pulled: its place is empty, it is damaged, or the place has another
# card.
MissingReason = Literal["not_there", "damaged", "other_card"]


class PullSession(Base):
    """A fixed snapshot of orders to pull. A seller has at most one open session."""

    __tablename__ = "pull_session"
    __table_args__ = (
        Index(
            "uq_pull_session_open",
            "seller_id",
            unique=True,
            postgresql_where=text("state = 'open'"),
        ),
        Index("ix_pull_session_recent", "seller_id", text("opened_at DESC")),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    state: Mapped[PullState] = mapped_column(Text, server_default="open")
    opened_at: Mapped[datetime]
    completed_at: Mapped[datetime | None]


class PullSessionOrder(Base):
    """An order in a session, with its values when the session was opened. An order that an upload
    changes stays in the session and needs review.

    In an open session, the review is computed from the order (`pullable.NEEDS_REVIEW`,
    `pull_changes.CHANGED`). When the session ends, the review is stored in `in_review` and
    `changed`.
    """

    __tablename__ = "pull_session_order"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "session_id"],
            ["pull_session.seller_id", "pull_session.id"],
        ),
        ForeignKeyConstraint(["seller_id", "order_id"], ["orders.seller_id", "orders.id"]),
        Index("ix_pull_session_order_order", "seller_id", "order_id"),
    )
    seller_id: Mapped[KeyPart]
    session_id: Mapped[KeyPart]
    order_id: Mapped[KeyPart]
    # Orders that were moved to the end are sorted by this number; it is null for all other orders.
    deferred_turn: Mapped[int | None]
    pulled_at: Mapped[datetime | None]
    # The time when a card of the order was reported as not found.
    missing_at: Mapped[datetime | None]
    in_review: Mapped[bool] = mapped_column(server_default=FALSE)
    changed: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    # The order's values when the session was opened.
    status: Mapped[str | None]
    refund_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_type: Mapped[str]
    order_date: Mapped[date | None] = mapped_column(Date)
    item_count: Mapped[BigInt]
    items_hash: Mapped[Decimal | None] = mapped_column(Numeric)


class PullSessionItem(Base):
    """A line of an order in a session, with its values when the session was opened. If the card was
    not found, the `missing_` columns have the report and the seller's decision.
    """

    __tablename__ = "pull_session_item"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "session_id", "order_id"],
            [
                "pull_session_order.seller_id",
                "pull_session_order.session_id",
                "pull_session_order.order_id",
            ],
            # The removal of an order from a session removes its lines, too.
            ondelete="CASCADE",
        ),
        Index(
            "ix_pull_session_item_missing",
            "seller_id",
            "order_id",
            postgresql_where=text("missing_at IS NOT NULL AND missing_outcome IS NULL"),
        ),
        CheckConstraint(
            "missing_outcome IN ('found', 'other_copy', 'refund', 'message')",
            name="missing_outcome",
        ),
        CheckConstraint(
            "missing_reason IN ('not_there', 'damaged', 'other_card')", name="missing_reason"
        ),
        CheckConstraint(
            "abs(missing_refund) < 100000000 AND scale(missing_refund) <= 4", name="missing_refund"
        ),
    )
    seller_id: Mapped[KeyPart]
    session_id: Mapped[KeyPart]
    order_id: Mapped[KeyPart]
    item_id: Mapped[KeyPart]
    sku_id: Mapped[BigInt | None]
    product_name: Mapped[str | None]
    product_line: Mapped[str | None]
    condition: Mapped[str | None]
    set_name: Mapped[str | None]
    rarity: Mapped[str | None]
    quantity: Mapped[int | None]
    main_photo_url: Mapped[str | None]
    # The time when the card was reported as not found, and the name of the reporting person.
    missing_at: Mapped[datetime | None]
    missing_by: Mapped[str | None]
    missing_reason: Mapped[MissingReason | None] = mapped_column(Text)
    missing_outcome: Mapped[MissingOutcome | None] = mapped_column(Text)
    missing_refund: Mapped[Decimal | None] = mapped_column(Numeric)
    # A description of the copy that was sent instead, and the seller's note.
    missing_copy: Mapped[str | None]
    missing_note: Mapped[str | None]
    settled_at: Mapped[datetime | None]
