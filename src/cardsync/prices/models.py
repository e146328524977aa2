"""Tables of pricing: `pricing_rule`, `promotion_card`, `price_run` (one pricing of a seller's
cards), `price_change` (a run's new targets), `price_rollback` with its cards, and `repricing_event`
(agents' reports of imported prices). `price_file_figure` has figures of the price file.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import (
    BigInteger,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import TRUE, Base, BigInt, DefaultNow, KeyPart, RowId
from cardsync.platform.value_types import Json, JsonObject
from cardsync.platform.work.piece import Piece
from cardsync.prices.engine.rules import RuleState

DecisionKind = Literal["pin", "accepted", "confirmed", "cap", "sale", "held_out", "twin"]
RunTrigger = Literal[
    "sync", "manual", "settings", "sale_started", "sale_ended", "recommendation", "review"
]
RunState = Literal["running", "completed", "awaiting_review", "discarded", "cancelled", "failed"]
RollbackState = Literal["requested", "ready", "served", "applied", "failed", "expired", "cancelled"]


class PricingRule(Base):
    """A pricing rule. `settings` contains the fields that have no column of their own."""

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
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    priority: Mapped[int] = mapped_column(Integer)
    enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    state: Mapped[RuleState] = mapped_column(Text, server_default="draft")
    preset: Mapped[str | None]
    query: Mapped[str] = mapped_column(server_default="")
    settings: Mapped[JsonObject] = mapped_column(JSONB)
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]


class RuleTest(Base):
    """A search and the seller's expectation of the prices of its cards."""

    __tablename__ = "rule_test"
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    search: Mapped[str] = mapped_column(server_default="")
    expectation: Mapped[str]
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]


class AutomatedMove(Base):
    """The sums of a card's price moves within five minutes that no member clicked, in
    ten-thousandths of a dollar, one for each side of `loss/loss_limits.py`. A row with a `source`
    counts while that source is in effect (`loss/moves.py`).
    """

    __tablename__ = "automated_move"
    seller_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    began_at: Mapped[datetime] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(primary_key=True, server_default="")
    today_moved: Mapped[BigInt]
    worst_moved: Mapped[BigInt]


class PricingSale(Base):
    """A promotion, active while enabled and starts_at <= now < ends_at."""

    __tablename__ = "pricing_sale"
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    priority: Mapped[int] = mapped_column(Integer)
    enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    query: Mapped[str] = mapped_column(server_default="")
    adjust_bp: Mapped[int] = mapped_column(Integer)
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    floor: Mapped[Decimal | None]
    floor_cost_bp: Mapped[int | None] = mapped_column(Integer)
    # True or null, never false, as in the undo values of older Activity entries.
    keep_never_lower: Mapped[bool | None]
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]


class PromotionCard(Base):
    """The time in which a card had a promotion's price: from the run that set the price to the run
    that removed it. The rows still identify a promotion's sales after prices, cards and the
    promotion have changed.
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
    seller_id: Mapped[KeyPart]
    sale_id: Mapped[KeyPart]
    marketplace_id: Mapped[KeyPart]
    since: Mapped[datetime] = mapped_column(primary_key=True)
    until: Mapped[datetime | None]


class PriceDecision(Base):
    """A decision about a card's price that is in force. Its key is the card's marketplace id, so it
    remains while the card is missing from the seller's file. `standing.py` reads and writes the
    table.

    `kind` is
    - pin: the price that the seller set; an accepted recommendation pins its price `until` its
      evidence expires
    - accepted: a regular price beyond the review limits that the seller accepted; it is exported
      until `until`
    - confirmed: a price before caps that the seller confirmed; it does not stop a run until `until`
    - cap: the cap of the rule `source_id` limited the price at the last pricing; without the cap,
      the rule would have `asked` for another price. `part` 0: the price moved to the limit; 1: the
      price stayed unchanged
    - sale: the target is a sale's price. The export omits the card if that sale is not active.
      While a run writes targets, a card has a row for the sale of its old target and one for that
      of its new target
    - held_out, twin: a rule's hold-out kept the card's price, or compares the card with held cards.
      The row is written once per 30-day window (`part`), when the rule first `asked` for another
      price

    `source_id` is the sale, or the rule of the hold-out or cap, or 0.
    """

    __tablename__ = "price_decision"
    seller_id: Mapped[KeyPart]
    kind: Mapped[DecisionKind] = mapped_column(Text, primary_key=True)
    marketplace_id: Mapped[KeyPart]
    source_id: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=False, server_default="0"
    )
    part: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, server_default="0"
    )
    price: Mapped[Decimal | None]
    asked: Mapped[Decimal | None]
    since: Mapped[DefaultNow]
    until: Mapped[datetime | None]
    decided_by: Mapped[str | None]


class GateHold(Base):
    """A card whose undercut price the market gate of its rule refused at the last pricing, with the
    gate's verdict.
    """

    __tablename__ = "gate_hold"
    seller_id: Mapped[KeyPart]
    marketplace_id: Mapped[KeyPart]
    verdict: Mapped[str]


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
    upload_id: Mapped[BigInt | None]
    state: Mapped[RunState] = mapped_column(Text, server_default="running")
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    summary: Mapped[JsonObject] = mapped_column(JSONB, server_default="{}")


class PriceChange(Base):
    __tablename__ = "price_change"
    __table_args__ = (Index("ix_price_change_card", "seller_id", "card_id", "run_id"),)
    seller_id: Mapped[KeyPart]
    run_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    old_price: Mapped[Decimal | None]
    new_price: Mapped[Decimal]
    rule_id: Mapped[BigInt | None]


class PriceRollback(Piece, Base):
    """A rollback of prices. A seller has at most one rollback whose `state` is requested, ready or
    served.
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
    # An object with one of the fields run_id, rule_id, list (a list's id) and since.
    scope: Mapped[JsonObject] = mapped_column(JSONB)
    cards: Mapped[int] = mapped_column(server_default="0")
    # The id of the last card that the preparation has checked.
    prepared_to: Mapped[int] = mapped_column(BigInteger, server_default="0")
    # SHA-256 of each file that was served for the rollback.
    files: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    error: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    requested_at: Mapped[datetime]
    ready_at: Mapped[datetime | None]
    served_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    expires_at: Mapped[datetime]


class PriceRollbackCard(Base):
    """`price` is the price to restore; `current_price` and `target_price` are the card's price and
    target when the rollback was prepared.
    """

    __tablename__ = "price_rollback_card"
    seller_id: Mapped[KeyPart]
    rollback_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    price: Mapped[Decimal]
    current_price: Mapped[Decimal | None]
    target_price: Mapped[Decimal | None]


class RepricingEvent(Piece, Base):
    """An agent's report of imported prices. Repetitions of a report have the same `key`. `rows` are
    stored until their prices are written to the cards.
    """

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
    key: Mapped[str]
    # imported or failed
    outcome: Mapped[str]
    sync_cycle_id: Mapped[str | None]
    file_sha256: Mapped[str | None]
    rollback_id: Mapped[BigInt | None]
    row_count: Mapped[int] = mapped_column(Integer)
    # The imported prices, packed by `rollback/packed_rows.py`.
    rows: Mapped[bytes | None] = mapped_column(LargeBinary)
    step: Mapped[str | None]
    error: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    # `rejected` lists the cards that the marketplace refused, with reasons; `paused`, the cards
    # that the agent omits from later files.
    rejected: Mapped[list[Json] | None] = mapped_column(JSONB(none_as_null=True))
    paused: Mapped[list[Json] | None] = mapped_column(JSONB(none_as_null=True))
    moved: Mapped[int] = mapped_column(server_default="0")
    # The effect of the imported prices, summed up by `rollback/brought.py`.
    brought: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    imported_at: Mapped[datetime]
    recorded_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]


class PriceFileFigure(Base):
    """The sums of a seller's price file, and its cards with the largest changes. They hold for the
    state of the seller's cards that `stamp` names (`files/kept_file.py`).
    """

    __tablename__ = "price_file_figure"
    seller_id: Mapped[KeyPart]
    stamp: Mapped[str]
    total: Mapped[int]
    raised: Mapped[int]
    raised_by: Mapped[Decimal] = mapped_column(Numeric(20, 4))
    lowered: Mapped[int]
    lowered_by: Mapped[Decimal] = mapped_column(Numeric(20, 4))
    first_prices: Mapped[int]
    largest: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
