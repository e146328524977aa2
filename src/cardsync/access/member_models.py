"""Tables of members besides `member` itself: `member_session`, `invitation`, `passkey` with its
challenges, `installation_operator`, `identity_seal`, and `account_deletion`.

They are global: a request is looked up in them by its token or credential, and sweeps look up
deletions.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Identity, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.models import own_member
from cardsync.platform.database.columns import Base


class MemberSession(Base):
    """A browser session.

    Only the SHA-256 of its cookie is stored. A session that ends is deleted. `browser` is a
    readable name (`sessions.py`), taken from the session's first request.
    """

    __tablename__ = "member_session"
    __table_args__ = (own_member(),)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
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
    """The link with which a member chooses a password. A newer link replaces it, and its use
    deletes it.
    """

    __tablename__ = "invitation"
    __table_args__ = (own_member(),)
    member_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class Passkey(Base):
    """A credential of a member's device: its public key and its signature counter."""

    __tablename__ = "passkey"
    __table_args__ = (own_member(),)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    member_id: Mapped[int] = mapped_column(BigInteger, index=True)
    name: Mapped[str]
    credential_id: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    public_key: Mapped[bytes] = mapped_column(LargeBinary)
    sign_count: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]


class PasskeyChallenge(Base):
    """Random bytes for a device to sign once and soon. For a sign-in it names no member."""

    __tablename__ = "passkey_challenge"
    challenge: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    member_id: Mapped[int | None] = mapped_column(
        BigInteger,
        ForeignKey("member.id", ondelete="CASCADE"),
    )
    expires_at: Mapped[datetime]


class InstallationOperator(Base):
    """A member who also runs this installation. The page Operator opens only for them."""

    __tablename__ = "installation_operator"
    member_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("member.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    added_at: Mapped[datetime]


class IdentitySeal(Base):
    """A seal, derived from the secret of a host that may create members and credentials. The
    application's role cannot read it (`access/sealed.py`).
    """

    __tablename__ = "identity_seal"
    seal: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    added_at: Mapped[datetime]


class AccountDeletion(Base):
    """An account whose owner requested its deletion. The owner can cancel the deletion until
    `begun_at`.
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
