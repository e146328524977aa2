"""Tables of accounts: `seller`, `member`, `api_key`, `access_token` (global: requests look them up)
and `account` (tenant: plan and switches).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    LargeBinary,
    Numeric,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.entitlements import Entitlements, entitlements
from cardsync.platform.database.columns import FALSE, NOW, TRUE, Base, Moment


def own_member(ondelete: str = "CASCADE") -> ForeignKeyConstraint:
    """Return the key by which a row names a member of its own seller, and of no other."""
    return ForeignKeyConstraint(
        ["seller_id", "member_id"], ["member.seller_id", "member.id"], ondelete=ondelete
    )


class Seller(Base):
    __tablename__ = "seller"
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    email: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class Member(Base):
    """A person who signs in to a seller account: owner or staff.

    Passwords are Argon2 hashes; who is invited has none yet.
    """

    __tablename__ = "member"
    __table_args__ = (
        Index("uq_member_email", text("lower(email)"), unique=True),
        # Foreign keys to a member include its seller.
        Index("uq_member_seller_id_id", "seller_id", "id", unique=True),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    email: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    role: Mapped[str] = mapped_column(Text)
    password_hash: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class ApiKey(Base):
    """Only the SHA-256 of a key is kept; the key itself is shown once.

    A key that `replaces` another has not been used yet; its first use revokes the other, which
    works until `ends_at` at most. The loss limits do not weigh what an `own_script` writes.
    """

    __tablename__ = "api_key"
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    name: Mapped[str] = mapped_column(Text)
    key_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)
    ends_at: Mapped[datetime | None] = mapped_column(Moment)
    replaces: Mapped[int | None] = mapped_column(BigInteger)
    own_script: Mapped[bool] = mapped_column(server_default=FALSE)


class AccessToken(Base):
    """A token of an assistant or a script, good for its scopes; only its SHA-256 is kept.

    Without a grant the operator made it. One of a grant repeats what each request has to know of
    the grant: it ends with the grant, and with the owner who gave it (`grant_models.py`).
    """

    __tablename__ = "access_token"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "grant_id"],
            ["oauth_grant.seller_id", "oauth_grant.id"],
            ondelete="CASCADE",
        ),
        own_member(),
        Index("ix_access_token_grant", "seller_id", "grant_id"),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    name: Mapped[str] = mapped_column(Text)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    grant_id: Mapped[int | None] = mapped_column(BigInteger)
    member_id: Mapped[int | None] = mapped_column(BigInteger, index=True)
    audience: Mapped[str | None] = mapped_column(Text)
    buyer_data: Mapped[bool] = mapped_column(server_default=TRUE)
    last_used_at: Mapped[datetime | None] = mapped_column(Moment)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    expires_at: Mapped[datetime | None] = mapped_column(Moment)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)


class Account(Base):
    """One row a seller: the plan and every switch that the operator or the seller sets."""

    __tablename__ = "account"
    __table_args__ = (CheckConstraint("credit_balance >= 0", name="credit_balance"),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    plan: Mapped[str] = mapped_column(Text)
    trial_ends_at: Mapped[datetime | None] = mapped_column(Moment)
    sync_mode: Mapped[str] = mapped_column(Text, server_default="full")
    # The lines that are switched on, the default first; and those that the seller switched off.
    product_lines: Mapped[list[str]] = mapped_column(ARRAY(Text))
    disabled_lines: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    suspended: Mapped[bool] = mapped_column(server_default=FALSE)
    past_due: Mapped[bool] = mapped_column(server_default=FALSE)
    write_consent: Mapped[bool] = mapped_column(server_default=TRUE)
    upload_approved: Mapped[bool] = mapped_column(server_default=FALSE)
    auto_sync_paused: Mapped[bool] = mapped_column(server_default=FALSE)
    automatic_pricing_paused: Mapped[bool] = mapped_column(server_default=FALSE)
    sync_interval_minutes: Mapped[int | None]
    quiet_hours: Mapped[str | None] = mapped_column(Text)
    time_zone: Mapped[str] = mapped_column(Text, server_default="America/New_York")
    full_history_requested: Mapped[bool] = mapped_column(server_default=FALSE)
    planner_opt_in: Mapped[bool] = mapped_column(server_default=FALSE)
    credits_metering_enabled: Mapped[bool] = mapped_column(server_default=FALSE)
    credit_balance: Mapped[int] = mapped_column(server_default="0")
    object_store_pipeline_enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    attribution_logging: Mapped[bool] = mapped_column(server_default=TRUE)
    # An order leaves within so many working days.
    ship_within_days: Mapped[int] = mapped_column(server_default="3")
    tracking_threshold: Mapped[Decimal] = mapped_column(Numeric(12, 4), server_default="50")
    direct_program: Mapped[bool] = mapped_column(server_default=FALSE)
    # Whether staff see what the shop earned (access/caller.py).
    staff_see_revenue: Mapped[bool] = mapped_column(server_default=FALSE)
    network_consent: Mapped[bool] = mapped_column(server_default=FALSE)
    network_published: Mapped[bool] = mapped_column(server_default=FALSE)
    # Since when each switch is on.
    network_consented_at: Mapped[datetime | None] = mapped_column(Moment)
    network_published_at: Mapped[datetime | None] = mapped_column(Moment)
    store_name: Mapped[str | None] = mapped_column(Text)
    # A buyer's link to a listing, with {marketplace_product_id}; and what a parcel's postage is,
    # by its value: "0:1.27,12:3.20".
    listing_url_template: Mapped[str | None] = mapped_column(Text)
    postage_steps: Mapped[str | None] = mapped_column(Text)
    direct_minimum: Mapped[Decimal] = mapped_column(Numeric(12, 4), server_default="0.40")
    default_rule_enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    minimum_move: Mapped[Decimal] = mapped_column(Numeric(12, 4), server_default="0.01")
    # A cap lets a price move by so much at least (pricing/engine/steps.py).
    minimum_cap_step: Mapped[Decimal] = mapped_column(Numeric(12, 4), server_default="0.05")
    max_age_hours: Mapped[int] = mapped_column(server_default="168")
    fee_level: Mapped[str] = mapped_column(Text, server_default="1-4")
    hard_floor: Mapped[Decimal | None] = mapped_column(Numeric(12, 4))
    repricing_scope: Mapped[str] = mapped_column(Text, server_default="all_games")
    shipping_adder: Mapped[Decimal | None] = mapped_column(Numeric(12, 4))
    # Writers without a member's click may take so much off the listed value in a week. Without a
    # budget it is a part of that value (pricing/loss/loss_limits.py).
    loss_budget: Mapped[Decimal | None] = mapped_column(Numeric(12, 4))
    # A sold copy's cost is found by fifo or average (lots/settle_uses.py). The amounts are the cost
    # of sending an order: a letter, a parcel with tracking, and the supplies of either.
    costing: Mapped[str] = mapped_column(Text, server_default="fifo")
    letter_postage: Mapped[Decimal] = mapped_column(Numeric(12, 4), server_default="0")
    parcel_postage: Mapped[Decimal] = mapped_column(Numeric(12, 4), server_default="0")
    supplies: Mapped[Decimal] = mapped_column(Numeric(12, 4), server_default="0")
    # Larger moves of a price wait for the seller's word (pricing/decisions).
    review_up_bp: Mapped[int | None]
    review_down_bp: Mapped[int | None]
    review_first_price: Mapped[bool] = mapped_column(server_default=FALSE)
    # The value is review or automatic (recommendations/generate.py).
    recommendations: Mapped[str] = mapped_column(Text, server_default="review")
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)

    def entitlements(self, now: datetime) -> Entitlements:
        return entitlements(
            plan=self.plan,
            trial_ends_at=self.trial_ends_at,
            sync_mode=self.sync_mode,
            upload_approved=self.upload_approved,
            past_due=self.past_due,
            write_consent=self.write_consent,
            automatic_pricing_paused=self.automatic_pricing_paused,
            suspended=self.suspended,
            now=now,
        )
