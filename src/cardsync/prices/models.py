"""Tables of pricing: `pricing_rule`, `promotion_card`, `price_run` (one pricing of a seller's
cards), `price_change` (a run's new targets), `price_rollback` with its cards, and `repricing_event`
(agents' reports of imported prices).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import NOW, TRUE, Base, Moment, Money
from cardsync.platform.work.piece import Piece
from cardsync.prices.engine.rules import RuleState

DecisionKind = Literal["pin", "accepted", "confirmed", "cap", "sale", "held_out", "twin"]
RunTrigger = Literal[
    "sync", "manual", "settings", "sale_started", "sale_ended", "recommendation", "review"
]
RunState = Literal["running", "completed", "awaiting_review", "discarded", "cancelled", "failed"]
RollbackState = Literal["requested", "ready", "served", "applied", "failed", "expired", "cancelled"]


class PricingRule(Base):
    """A base rule of pricing.md; fields with an inner structure (cap, stale, market_gate, …) are
    in `settings`.
    """

    __tablename__ = "pricing_rule"
    __table_args__ = (
        Index(
            "uq_pricing_rule_priority",
            "seller_id",
            "priority",
            unique=True,
            postgresql_where=text("state = 'published'"),
        ),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    priority: Mapped[int] = mapped_column(Integer)
    enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    state: Mapped[RuleState] = mapped_column(Text, server_default="draft")
    preset: Mapped[str | None] = mapped_column(Text)
    query: Mapped[str] = mapped_column(Text, server_default="")
    settings: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class RuleTest(Base):
    """A rule test is a search and the seller's expectation of the prices of its cards."""

    __tablename__ = "rule_test"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    search: Mapped[str] = mapped_column(Text, server_default="")
    expectation: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class AutomatedMove(Base):
    """A sum of additions to a card's price within five minutes by writers without a member's click,
    today and at worst, in ten-thousandths of a dollar (`loss/loss_limits.py`). A move with a
    `source` counts as long as its source holds (`loss/moves.py`).
    """

    __tablename__ = "automated_move"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    card_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    began_at: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    source: Mapped[str] = mapped_column(Text, primary_key=True, server_default="")
    today_moved: Mapped[int] = mapped_column(BigInteger)
    worst_moved: Mapped[int] = mapped_column(BigInteger)


class PricingSale(Base):
    """A temporary overlay: active while enabled and starts_at <= now < ends_at."""

    __tablename__ = "pricing_sale"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    priority: Mapped[int] = mapped_column(Integer)
    enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    query: Mapped[str] = mapped_column(Text, server_default="")
    adjust_bp: Mapped[int] = mapped_column(Integer)
    starts_at: Mapped[datetime] = mapped_column(Moment)
    ends_at: Mapped[datetime] = mapped_column(Moment)
    floor: Mapped[Decimal | None] = mapped_column(Money)
    floor_cost_bp: Mapped[int | None] = mapped_column(Integer)
    # True or null, as the images of older entries have it.
    keep_never_lower: Mapped[bool | None]
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class PromotionCard(Base):
    """When a card had a promotion's price: from the run that gave it to the run that took it back.
    The sales meanwhile stay known when prices, cards and the promotion have changed.
    """

    __tablename__ = "promotion_card"
    __table_args__ = (
        Index(
            "uq_promotion_card_now",
            "seller_id",
            "sale_id",
            "marketplace_id",
            unique=True,
            postgresql_where=text("until IS NULL"),
        ),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    sale_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    marketplace_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    since: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    until: Mapped[datetime | None] = mapped_column(Moment)


class PriceDecision(Base):
    """A decision about a card's price that still holds, by the marketplace's id of the card: it
    outlives the card's absence. `standing.py` reads and writes it.

    `kind` is
    - pin: the seller's price; an accepted recommendation pins its price `until` its evidence
      expires
    - accepted: a regular price beyond the review limits that passes until then
    - confirmed: a price before caps that does not stop a run until then
    - cap: the cap of the rule `source_id` limits the price at the last pricing, which would have
      `asked` for another one; `part` 0: the price moves up to the limit, 1: it stays where it is
    - sale: the target is a sale's price. The export leaves it out when that sale is not on. While a
      run writes targets, a card has the sale of its old target and that of its new one
    - held_out, twin: a rule's hold-out kept the card at its price, or compares it with those. Noted
      once in thirty days (`part`), when the rule first `asked` for another price

    `source_id` is the sale, or the rule of the hold-out or cap, or 0.
    """

    __tablename__ = "price_decision"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[DecisionKind] = mapped_column(Text, primary_key=True)
    marketplace_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    source_id: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=False, server_default="0"
    )
    part: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, server_default="0"
    )
    price: Mapped[Decimal | None] = mapped_column(Money)
    asked: Mapped[Decimal | None] = mapped_column(Money)
    since: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    until: Mapped[datetime | None] = mapped_column(Moment)
    decided_by: Mapped[str | None] = mapped_column(Text)


class GateHold(Base):
    """A card whose aggressive price the market gate of its rule did not let through at the last
    pricing, and the gate's verdict.
    """

    __tablename__ = "gate_hold"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    marketplace_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    verdict: Mapped[str] = mapped_column(Text)


class PriceRun(Piece, Base):
    __tablename__ = "price_run"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "upload_id"], ["upload.seller_id", "upload.id"]),
        Index(
            "uq_price_run_upload",
            "seller_id",
            "upload_id",
            unique=True,
            postgresql_where=text("upload_id IS NOT NULL"),
        ),
        Index("ix_price_run_ended", "seller_id", "finished_at", "id"),
    )
    trigger: Mapped[RunTrigger] = mapped_column(Text)
    upload_id: Mapped[int | None] = mapped_column(BigInteger)
    state: Mapped[RunState] = mapped_column(Text, server_default="running")
    started_at: Mapped[datetime] = mapped_column(Moment)
    finished_at: Mapped[datetime | None] = mapped_column(Moment)
    summary: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default="{}")


class PriceChange(Base):
    __tablename__ = "price_change"
    __table_args__ = (Index("ix_price_change_card", "seller_id", "card_id", "run_id"),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    card_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    old_price: Mapped[Decimal | None] = mapped_column(Money)
    new_price: Mapped[Decimal] = mapped_column(Money)
    rule_id: Mapped[int | None] = mapped_column(BigInteger)


class PriceRollback(Piece, Base):
    """`state` is requested, ready, served, applied, failed, expired or cancelled; at most one of
    a seller is not over.
    """

    __tablename__ = "price_rollback"
    __table_args__ = (
        Index(
            "uq_price_rollback_open",
            "seller_id",
            unique=True,
            postgresql_where=text("state IN ('requested', 'ready', 'served')"),
        ),
    )
    state: Mapped[RollbackState] = mapped_column(Text, server_default="requested")
    # One of run_id, rule_id, list (its id) and since.
    scope: Mapped[dict[str, Any]] = mapped_column(JSONB)
    cards: Mapped[int] = mapped_column(server_default="0")
    # The last card that was looked at while it is prepared.
    prepared_to: Mapped[int] = mapped_column(BigInteger, server_default="0")
    # SHA-256 of every file that was served of it.
    files: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    error: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    requested_at: Mapped[datetime] = mapped_column(Moment)
    ready_at: Mapped[datetime | None] = mapped_column(Moment)
    served_at: Mapped[datetime | None] = mapped_column(Moment)
    finished_at: Mapped[datetime | None] = mapped_column(Moment)
    expires_at: Mapped[datetime] = mapped_column(Moment)


class PriceRollbackCard(Base):
    """`price` is the price to restore; the others are the card's price and target when the rollback
    was prepared.
    """

    __tablename__ = "price_rollback_card"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    rollback_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    card_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    price: Mapped[Decimal] = mapped_column(Money)
    current_price: Mapped[Decimal | None] = mapped_column(Money)
    target_price: Mapped[Decimal | None] = mapped_column(Money)


class RepricingEvent(Piece, Base):
    """`key` identifies an agent's repeated report; `rows` wait until the prices are moved."""

    __tablename__ = "repricing_event"
    __table_args__ = (
        Index("uq_repricing_event_key", "seller_id", "key", unique=True),
        Index(
            "ix_repricing_event_open",
            "seller_id",
            "id",
            postgresql_where=text("settled_at IS NULL"),
        ),
        Index(
            "ix_repricing_event_cycle",
            "seller_id",
            "sync_cycle_id",
            postgresql_where=text("sync_cycle_id IS NOT NULL"),
        ),
    )
    key: Mapped[str] = mapped_column(Text)
    # imported or failed
    outcome: Mapped[str] = mapped_column(Text)
    sync_cycle_id: Mapped[str | None] = mapped_column(Text)
    file_sha256: Mapped[str | None] = mapped_column(Text)
    rollback_id: Mapped[int | None] = mapped_column(BigInteger)
    row_count: Mapped[int] = mapped_column(Integer)
    # The moved prices, as `rollback/packed_rows.py` packs them.
    rows: Mapped[bytes | None] = mapped_column(LargeBinary)
    step: Mapped[str | None] = mapped_column(Text)
    error: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # The cards that the marketplace refused, each with its reason, and those that the agent leaves
    # out of later files.
    rejected: Mapped[list[Any] | None] = mapped_column(JSONB(none_as_null=True))
    paused: Mapped[list[Any] | None] = mapped_column(JSONB(none_as_null=True))
    moved: Mapped[int] = mapped_column(server_default="0")
    # The effect of the moved prices, as `rollback/brought.py` adds it up.
    brought: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    imported_at: Mapped[datetime] = mapped_column(Moment)
    recorded_at: Mapped[datetime] = mapped_column(Moment)
    settled_at: Mapped[datetime | None] = mapped_column(Moment)
