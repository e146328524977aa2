"""Table of proposals: `proposal` has the changes that wait for a person's decision, or were
decided.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, KeyPart, RowId
from cardsync.platform.value_types import JsonObject

State = Literal["pending", "snoozed", "dismissed", "accepted", "auto_applied", "expired"]


class Proposal(Base):
    """A change that waits for a person's decision, or that was decided.

    `family` is review (a price beyond the seller's limits) or the family of a recommendation:
    price, liquidation or account. `slot` names the subject, a card or a rule; a subject has at most
    one open proposal per family. A review names its card by `marketplace_id`, and a card has at
    most one review.

    `kind` is the kind of a recommendation, or the reason for a review: rise, drop, first_price or
    sale. A review of the kind sale is the return from a promotion's price, and counts as accepted.
    `state` is pending, snoozed (until `evidence_key` changes), dismissed, accepted, auto_applied or
    expired. `revision` is the time of the proposal's newest content. `worth` is the sort key of the
    list, in ten-thousandths; for a review it is the move times the copies. A review's `evidence`
    has the proposed price without the sale's cut (`regular_price`) and the rule's price before its
    cap (`result`), in ten-thousandths.
    """

    __tablename__ = "proposal"
    __table_args__ = (
        Index(
            "uq_proposal_slot",
            "seller_id",
            "slot",
            unique=True,
            postgresql_where=text("state IN ('pending', 'snoozed', 'dismissed')"),
        ),
        Index(
            "uq_proposal_review",
            "seller_id",
            "marketplace_id",
            unique=True,
            postgresql_where=text("family = 'review'"),
        ),
        Index(
            "ix_proposal_pending",
            "seller_id",
            "family",
            text("worth DESC"),
            "id",
            postgresql_include=["expires_at", "revision", "expected_value"],
            postgresql_where=text("state = 'pending'"),
        ),
        Index(
            "ix_proposal_expired",
            "seller_id",
            "settled_at",
            postgresql_where=text("state = 'expired'"),
        ),
        Index(
            "ix_proposal_applied",
            "seller_id",
            "settled_at",
            postgresql_where=text("state IN ('accepted', 'auto_applied')"),
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    slot: Mapped[str]
    family: Mapped[str]
    kind: Mapped[str]
    state: Mapped[State] = mapped_column(Text)
    card_id: Mapped[BigInt | None]
    marketplace_id: Mapped[BigInt | None]
    rule_id: Mapped[BigInt | None]
    current_price: Mapped[Decimal | None]
    proposed_price: Mapped[Decimal | None]
    expected_value: Mapped[Decimal | None]
    worth: Mapped[BigInt]
    confidence: Mapped[str | None]
    evidence: Mapped[JsonObject] = mapped_column(JSONB, server_default="{}")
    evidence_key: Mapped[str | None]
    revision: Mapped[datetime]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]
    settled_by: Mapped[str | None]
