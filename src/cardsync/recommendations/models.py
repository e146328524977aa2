"""Tables of recommendations: `recommendation`, `recommendation_event` and `recommendation_scan`."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import BigInteger, Identity, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.database.columns import Base, Moment, Money

State = Literal["pending", "snoozed", "dismissed", "accepted", "auto_applied", "expired"]


class Recommendation(Base):
    """A recommendation of one family (price, liquidation or account).

    `slot` is what it is about: a card or a rule has at most one that is open. `state` is pending,
    snoozed (until `evidence_key` changes), dismissed, accepted, auto_applied or expired. `revision`
    is the moment of its newest content. `worth` is what the list is sorted by, in ten-thousandths.
    """

    __tablename__ = "recommendation"
    __table_args__ = (
        Index(
            "uq_recommendation_slot",
            "seller_id",
            "slot",
            unique=True,
            postgresql_where=text("state IN ('pending', 'snoozed', 'dismissed')"),
        ),
        Index(
            "ix_recommendation_pending",
            "seller_id",
            "family",
            text("worth DESC"),
            "id",
            postgresql_include=["expires_at", "revision", "expected_value"],
            postgresql_where=text("state = 'pending'"),
        ),
        Index(
            "ix_recommendation_expired",
            "seller_id",
            "settled_at",
            postgresql_where=text("state = 'expired'"),
        ),
        Index(
            "ix_recommendation_applied",
            "seller_id",
            "settled_at",
            postgresql_where=text("state IN ('accepted', 'auto_applied')"),
        ),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    slot: Mapped[str] = mapped_column(Text)
    family: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    state: Mapped[State] = mapped_column(Text)
    card_id: Mapped[int | None] = mapped_column(BigInteger)
    rule_id: Mapped[int | None] = mapped_column(BigInteger)
    current_price: Mapped[Decimal | None] = mapped_column(Money)
    proposed_price: Mapped[Decimal | None] = mapped_column(Money)
    expected_value: Mapped[Decimal | None] = mapped_column(Money)
    worth: Mapped[int] = mapped_column(BigInteger)
    confidence: Mapped[str] = mapped_column(Text)
    evidence: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default="{}")
    evidence_key: Mapped[str] = mapped_column(Text)
    revision: Mapped[datetime] = mapped_column(Moment)
    created_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime] = mapped_column(Moment)
    settled_at: Mapped[datetime | None] = mapped_column(Moment)
    settled_by: Mapped[str | None] = mapped_column(Text)


class RecommendationEvent(Base):
    """An event is shown, accepted, auto_applied or expired; each happens once to a revision."""

    __tablename__ = "recommendation_event"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    recommendation_id: Mapped[int] = mapped_column(
        BigInteger,
        primary_key=True,
        autoincrement=False,
    )
    revision: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    kind: Mapped[str] = mapped_column(Text, primary_key=True)
    at: Mapped[datetime] = mapped_column(Moment)
    actor: Mapped[str] = mapped_column(Text)


class RecommendationScan(Base):
    """The newest generation, and how many cards each rule governed then."""

    __tablename__ = "recommendation_scan"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    generated_at: Mapped[datetime] = mapped_column(Moment)
    rule_cards: Mapped[dict[str, int]] = mapped_column(JSONB, server_default="{}")
