"""Tables of members beside `member` itself: `member_session` and `invitation`.

Global: a request is looked up in them by its token.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Identity, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.database.columns import Base, Moment


class MemberSession(Base):
    """A browser that signed in.

    Only the SHA-256 of its cookie is kept; a session that ends is deleted.
    """

    __tablename__ = "member_session"
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    member_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("member.id", ondelete="CASCADE"),
        index=True,
    )
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_seen_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime] = mapped_column(Moment)


class Invitation(Base):
    """The one link with which a member may choose a password; a newer one takes its place, and
    using it deletes it.
    """

    __tablename__ = "invitation"
    member_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("member.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        ForeignKey("seller.id", ondelete="CASCADE"),
        index=True,
    )
    token_hash: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    created_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime] = mapped_column(Moment)
