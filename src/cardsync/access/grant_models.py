"""The tables of assistants that a member authorized: `oauth_client`, `oauth_code`, `refresh_token`
(global, because requests are looked up in them) and `oauth_grant` (tenant).

An access token copies the rights of its grant and ends with the grant. Database functions create
and end both (`sealed.py`).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.models import own_member
from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId


class OAuthClient(Base):
    """A program that requests grants.

    `known_by` is `document` if `client_id` is the address of the client's metadata document, which
    is fetched again after `expires_at`. It is `registration` if the client registered itself; then
    `host` is None, and an unused client is deleted after `expires_at`.
    """

    __tablename__ = "oauth_client"
    client_id: Mapped[str] = mapped_column(primary_key=True)
    known_by: Mapped[str]
    name: Mapped[str]
    host: Mapped[str | None]
    redirect_uris: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[datetime]
    fetched_at: Mapped[datetime | None]
    first_used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class OAuthCode(Base):
    """An owner's consent, which the client redeems only once and soon. `grant_id` is the grant that
    was then created.
    """

    __tablename__ = "oauth_code"
    __table_args__ = (own_member(),)
    code_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    member_id: Mapped[BigInt]
    client_id: Mapped[str]
    redirect_uri: Mapped[str]
    code_challenge: Mapped[str]
    audience: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    buyer_data: Mapped[bool]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    used_at: Mapped[datetime | None]
    grant_id: Mapped[BigInt | None]


class OAuthGrant(Base):
    """A client's rights in a shop, until an owner revokes them. Without `buyer_data`, the answers
    to the client omit buyers.
    """

    __tablename__ = "oauth_grant"
    __table_args__ = (own_member("SET NULL (member_id)"),)
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    # None if the member has left.
    member_id: Mapped[BigInt | None]
    client_id: Mapped[str]
    # The client's name and host at the time of the consent.
    name: Mapped[str]
    host: Mapped[str | None]
    audience: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    buyer_data: Mapped[bool]
    created_at: Mapped[DefaultNow]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class RefreshToken(Base):
    """A refresh token. The client exchanges it once for new tokens of the grant. Only its SHA-256
    is stored. A second use may be a thief's, so it ends the grant.
    """

    __tablename__ = "refresh_token"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "grant_id"],
            ["oauth_grant.seller_id", "oauth_grant.id"],
            ondelete="CASCADE",
        ),
        Index("ix_refresh_token_grant", "seller_id", "grant_id"),
    )
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    grant_id: Mapped[BigInt]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    used_at: Mapped[datetime | None]
