"""Tenant tables of pulling on phones: links, marks, and claims on the cards that phones show."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Identity,
    Index,
    LargeBinary,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, BigInt, KeyPart, RowId


class PullLink(Base):
    """A link that opens the queue of a session on a phone, for one product line or for all. Only
    the hash of the link's secret is stored.
    """

    __tablename__ = "pull_link"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "session_id"],
            ["pull_session.seller_id", "pull_session.id"],
        ),
        Index("ix_pull_link_session", "seller_id", "session_id"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    session_id: Mapped[BigInt]
    # Null: the link shows all product lines. An empty text: only the items without a product line.
    product_line: Mapped[str | None]
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary)
    made_by: Mapped[str]
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class PullMark(Base):
    """A phone's report about a card (see `progress.Mark`). `received` numbers the marks as they
    arrive.

    The item may be removed from the session later, so the foreign key refers only to the session.
    """

    __tablename__ = "pull_mark"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "session_id"],
            ["pull_session.seller_id", "pull_session.id"],
        ),
        Index("uq_pull_mark_received", "seller_id", "session_id", "received", unique=True),
        Index(
            "ix_pull_mark_missing",
            "seller_id",
            "sku_id",
            postgresql_where=text("kind = 'missing' AND NOT undone"),
        ),
        CheckConstraint("kind IN ('pulled', 'defer', 'missing', 'undo')", name="kind"),
        CheckConstraint("quantity >= 1", name="quantity"),
    )
    seller_id: Mapped[KeyPart]
    session_id: Mapped[KeyPart]
    id: Mapped[str] = mapped_column(primary_key=True)
    received: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    link_id: Mapped[BigInt]
    item_id: Mapped[BigInt]
    order_id: Mapped[BigInt | None]
    sku_id: Mapped[BigInt | None]
    kind: Mapped[str]
    quantity: Mapped[int]
    undoes: Mapped[str]
    device: Mapped[str]
    sequence: Mapped[BigInt]
    person: Mapped[str]
    undone: Mapped[bool] = mapped_column(server_default=FALSE)
    received_at: Mapped[datetime]


class PullClaim(Base):
    """A claim of a phone on the line that it shows. Other phones do not offer this line before
    `until`.
    """

    __tablename__ = "pull_claim"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "session_id"],
            ["pull_session.seller_id", "pull_session.id"],
        ),
    )
    seller_id: Mapped[KeyPart]
    session_id: Mapped[KeyPart]
    item_id: Mapped[KeyPart]
    device: Mapped[str]
    until: Mapped[datetime]
