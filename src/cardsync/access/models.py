"""The tables of accounts: `seller`, `member`, `api_key`, `access_token` (global, because requests
are looked up in them) and `account` (tenant; it has the plan and the switches).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.declared_settings import SettingsOfAccount, settings_of
from cardsync.access.entitlements import Entitlements, entitlements
from cardsync.platform.database.columns import (
    FALSE,
    TRUE,
    Base,
    BigInt,
    DefaultNow,
    KeyPart,
    RowId,
)


def own_member(ondelete: str = "CASCADE") -> ForeignKeyConstraint:
    """Return a foreign key to a member of the same seller."""
    return ForeignKeyConstraint(
        ["seller_id", "member_id"], ["member.seller_id", "member.id"], ondelete=ondelete
    )


class Seller(Base):
    __tablename__ = "seller"
    id: Mapped[RowId]
    name: Mapped[str]
    email: Mapped[str]
    created_at: Mapped[DefaultNow]


class Member(Base):
    """A person who signs in to a seller's account, as owner or staff.

    A password is stored as an Argon2 hash; an invited member has none yet.
    """

    __tablename__ = "member"
    __table_args__ = (
        Index("uq_member_email", text("lower(email)"), unique=True),
        # Other tables' foreign keys to a member include the seller, so they need this index.
        Index("uq_member_seller_id_id", "seller_id", "id", unique=True),
    )
    id: Mapped[RowId]
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    email: Mapped[str]
    name: Mapped[str]
    role: Mapped[str]
    password_hash: Mapped[str | None]
    created_at: Mapped[DefaultNow]


class ApiKey(Base):
    """An API key. Only its SHA-256 is stored; the key itself is shown once.

    A key that `replaces` another key has not been used yet. Its first use revokes the other key,
    which works until `ends_at` at most. The loss limits do not count the changes of an
    `own_script`.
    """

    __tablename__ = "api_key"
    id: Mapped[RowId]
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    name: Mapped[str]
    key_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[DefaultNow]
    revoked_at: Mapped[datetime | None]
    ends_at: Mapped[datetime | None]
    replaces: Mapped[BigInt | None]
    own_script: Mapped[bool] = mapped_column(server_default=FALSE)


class AccessToken(Base):
    """A token of an assistant or a script, with its scopes. Only its SHA-256 is stored.

    An operator made the tokens without a grant. A grant's token copies those columns of the grant
    that each request needs. It ends with the grant, and when the owner who gave the grant loses
    that role (`grant_models.py`).
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
    id: Mapped[RowId]
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    name: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    grant_id: Mapped[BigInt | None]
    member_id: Mapped[int | None] = mapped_column(BigInteger, index=True)
    audience: Mapped[str | None]
    buyer_data: Mapped[bool] = mapped_column(server_default=TRUE)
    last_used_at: Mapped[datetime | None]
    created_at: Mapped[DefaultNow]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class Account(SettingsOfAccount, Base):
    """An account: the plan and all switches that an operator or the seller sets, in one row for
    each seller.
    """

    __tablename__ = "account"
    __table_args__ = (CheckConstraint("credit_balance >= 0", name="credit_balance"),)
    seller_id: Mapped[KeyPart]
    # The product lines that the seller enabled, the default one first, and those that the seller
    # disabled.
    product_lines: Mapped[list[str]] = mapped_column(ARRAY(Text))
    disabled_lines: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    credit_balance: Mapped[int] = mapped_column(server_default="0")
    # The time when each switch of the network was turned on.
    network_consented_at: Mapped[datetime | None]
    network_published_at: Mapped[datetime | None]
    direct_minimum: Mapped[Decimal] = mapped_column(server_default="0.40")
    default_rule_enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    minimum_move: Mapped[Decimal] = mapped_column(server_default="0.01")
    # Every cap lets a price move by at least this amount (prices/engine/steps.py).
    minimum_cap_step: Mapped[Decimal] = mapped_column(server_default="0.05")
    max_age_hours: Mapped[int] = mapped_column(server_default="168")
    fee_level: Mapped[str] = mapped_column(server_default="1-4")
    hard_floor: Mapped[Decimal | None]
    repricing_scope: Mapped[str] = mapped_column(server_default="all_games")
    shipping_adder: Mapped[Decimal | None]
    # Price moves above these limits wait for the owner's approval (prices/decisions).
    review_up_bp: Mapped[int | None]
    review_down_bp: Mapped[int | None]
    review_first_price: Mapped[bool] = mapped_column(server_default=FALSE)
    # The mode of suggestions: review or automatic (recommendations/generate.py).
    recommendations: Mapped[str] = mapped_column(server_default="review")
    created_at: Mapped[DefaultNow]

    def entitlements(self, now: datetime) -> Entitlements:
        return entitlements(self, now)


SETTINGS: Final = settings_of(Account.__mapper__.columns)
