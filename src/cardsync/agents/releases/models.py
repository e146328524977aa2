"""The tables `release` and `release_kill` (global): the operator's published releases of the agent
and the desktop wrapper, and the versions that must not run.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Identity, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import NOW, Base, Moment


class Release(Base):
    """One artifact of a release.

    `record` is the canonical JSON that `record_signature` signs; both signatures are base64
    Ed25519.
    """

    __tablename__ = "release"
    __table_args__ = (
        UniqueConstraint("product", "version", "platform", "channel"),
        CheckConstraint("percentage BETWEEN 0 AND 100", name="percentage"),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    product: Mapped[str] = mapped_column(Text)
    version: Mapped[str] = mapped_column(Text)
    platform: Mapped[str] = mapped_column(Text)
    channel: Mapped[str] = mapped_column(Text, server_default="stable")
    percentage: Mapped[int] = mapped_column(server_default="100")
    min_from: Mapped[str | None] = mapped_column(Text)
    expires_at: Mapped[datetime] = mapped_column(Moment)
    storage_key: Mapped[str] = mapped_column(Text)
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(Text)
    signature: Mapped[str] = mapped_column(Text)
    record: Mapped[str] = mapped_column(Text)
    record_signature: Mapped[str] = mapped_column(Text)
    published_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class ReleaseKill(Base):
    """A killed version: installations that run it must update before they continue."""

    __tablename__ = "release_kill"
    product: Mapped[str] = mapped_column(Text, primary_key=True)
    version: Mapped[str] = mapped_column(Text, primary_key=True)
    killed_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
