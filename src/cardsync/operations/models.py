"""`backup_report` (global): what became of each backup and of each rehearsal of one."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Identity, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, Moment


class BackupReport(Base):
    """`kind` is backup or rehearsal; `failure` says why one failed, null where it did not."""

    __tablename__ = "backup_report"
    __table_args__ = (Index("ix_backup_report_kind", "kind", "ended_at"),)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    kind: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    began_at: Mapped[datetime] = mapped_column(Moment)
    ended_at: Mapped[datetime] = mapped_column(Moment)
    failure: Mapped[str | None] = mapped_column(Text)
    bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")
