"""Tables of pull sessions (all tenant): `pull_session`, `pull_session_order`, `pull_session_item`."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Date,
    ForeignKeyConstraint,
    Identity,
    Index,
    Numeric,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, Moment

PullState = Literal["open", "completed", "cancelled"]
# The decisions about cards that were not found.
MissingOutcome = Literal["found", "other_copy", "refund", "message"]
# Why a card was not taken: its place is empty, it is damaged, or another card is there.
MissingReason = Literal["not_there", "damaged", "other_card"]


class PullSession(Base):
    """A pull session is a fixed snapshot of orders to pull; a seller has at most one open session.

    `state` is open, completed or cancelled.
    """

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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    state: Mapped[PullState] = mapped_column(Text, server_default="open")
    opened_at: Mapped[datetime] = mapped_column(Moment)
    completed_at: Mapped[datetime | None] = mapped_column(Moment)


class PullSessionOrder(Base):
    """An order in a session, as it was when the session was opened. If an upload changes it,
    it stays, and is marked for review: while the session is open that is read from the order itself
    (`pullable.NEEDS_REVIEW`, `pull_changes.CHANGED`); `in_review` and `changed` hold the values of
    the session's end.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    session_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    order_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # Orders that were pushed to the end are in the order of their turns; the turn is null for all
    # others.
    deferred_turn: Mapped[int | None]
    pulled_at: Mapped[datetime | None] = mapped_column(Moment)
    # A card of the order was not found on its place.
    missing_at: Mapped[datetime | None] = mapped_column(Moment)
    in_review: Mapped[bool] = mapped_column(server_default=FALSE)
    changed: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    # These values are those of the session's opening.
    status: Mapped[str | None] = mapped_column(Text)
    refund_amt: Mapped[Decimal | None] = mapped_column(Numeric)
    shipping_type: Mapped[str] = mapped_column(Text)
    order_date: Mapped[date | None] = mapped_column(Date)
    item_count: Mapped[int] = mapped_column(BigInteger)
    items_hash: Mapped[Decimal | None] = mapped_column(Numeric)


class PullSessionItem(Base):
    """A line of an order in a session, as it was when the session was opened; whether its card was
    missing, and the decision about it.
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
            # An order that is taken out of a session takes its lines along.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    session_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    order_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    item_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    sku_id: Mapped[int | None] = mapped_column(BigInteger)
    product_name: Mapped[str | None] = mapped_column(Text)
    product_line: Mapped[str | None] = mapped_column(Text)
    condition: Mapped[str | None] = mapped_column(Text)
    set_name: Mapped[str | None] = mapped_column(Text)
    rarity: Mapped[str | None] = mapped_column(Text)
    quantity: Mapped[int | None]
    main_photo_url: Mapped[str | None] = mapped_column(Text)
    # The card was not found at that time, by a person with this name.
    missing_at: Mapped[datetime | None] = mapped_column(Moment)
    missing_by: Mapped[str | None] = mapped_column(Text)
    missing_reason: Mapped[MissingReason | None] = mapped_column(Text)
    missing_outcome: Mapped[MissingOutcome | None] = mapped_column(Text)
    missing_refund: Mapped[Decimal | None] = mapped_column(Numeric)
    # The copy that went in its place, in words, and what its seller noted.
    missing_copy: Mapped[str | None] = mapped_column(Text)
    missing_note: Mapped[str | None] = mapped_column(Text)
    settled_at: Mapped[datetime | None] = mapped_column(Moment)
