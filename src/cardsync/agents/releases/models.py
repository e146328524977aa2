"""The tables `release` and `release_kill` (global): the operator's published releases of the agent
and the desktop wrapper, and the versions that must not run.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, DefaultNow, RowId


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
    id: Mapped[RowId]
    product: Mapped[str]
    version: Mapped[str]
    platform: Mapped[str]
    channel: Mapped[str] = mapped_column(server_default="stable")
    percentage: Mapped[int] = mapped_column(server_default="100")
    min_from: Mapped[str | None]
    expires_at: Mapped[datetime]
    storage_key: Mapped[str]
    size: Mapped[BigInt]
    sha256: Mapped[str]
    signature: Mapped[str]
    record: Mapped[str]
    record_signature: Mapped[str]
    published_at: Mapped[DefaultNow]


class ReleaseKill(Base):
    """A killed version: installations that run it must update before they continue."""

    __tablename__ = "release_kill"
    product: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[str] = mapped_column(primary_key=True)
    killed_at: Mapped[DefaultNow]
