"""The tables of members besides `member`: `member_session`, `invitation`, `passkey` with its
challenges, `installation_operator`, `identity_seal` and `account_deletion`.

These tables are global, because a request is looked up in them by its token or credential, and a
job looks up the deletions of all sellers.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.models import own_member
from cardsync.platform.database.columns import Base, BigInt, KeyPart, RowId


class MemberSession(Base):
    """A browser session.

    Only the SHA-256 of its cookie is stored. The row of a session that ends is deleted. `browser`
    is a readable name (`sessions.py`), taken from the session's first request.
    """

    __tablename__ = "member_session"
    __table_args__ = (own_member(),)
    id: Mapped[RowId]
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    member_id: Mapped[int] = mapped_column(BigInteger, index=True)
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    browser: Mapped[str | None]


class Invitation(Base):
    """An invitation: a link with which a member chooses a password. A newer invitation replaces an
    older one, and using it deletes it.
    """

    __tablename__ = "invitation"
    __table_args__ = (own_member(),)
    member_id: Mapped[KeyPart]
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class Passkey(Base):
    """A passkey: a credential of a member's device, with its public key and its
    signature counter.
    """

    __tablename__ = "passkey"
    __table_args__ = (own_member(),)
    id: Mapped[RowId]
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    member_id: Mapped[int] = mapped_column(BigInteger, index=True)
    name: Mapped[str]
    credential_id: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[BigInt]
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class PasskeyChallenge(Base):
    """Random bytes that a device signs only once and soon. A challenge for a sign-in names no
    member.
    """

    __tablename__ = "passkey_challenge"
    challenge: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    member_id: Mapped[int | None] = mapped_column(
        BigInteger,
        ForeignKey("member.id", ondelete="CASCADE"),
    )
    expires_at: Mapped[datetime]


class InstallationOperator(Base):
    """A member who also runs this installation. Only operators can open the page Operator."""

    __tablename__ = "installation_operator"
    member_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("member.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    added_at: Mapped[datetime]


class IdentitySeal(Base):
    """A seal, derived from the secret of a host. Only a host with a seal may create members and
    credentials. The application's database role cannot read this table (`access/sealed.py`).
    """

    __tablename__ = "identity_seal"
    seal: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    added_at: Mapped[datetime]


class AccountDeletion(Base):
    """An account whose owner requested its deletion. Until `begun_at` the owner can cancel the
    deletion.
    """

    __tablename__ = "account_deletion"
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    asked_at: Mapped[datetime]
    due_at: Mapped[datetime]
    begun_at: Mapped[datetime | None]
