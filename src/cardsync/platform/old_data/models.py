"""The table `old_rows`: the object store's files with old rows of a seller."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, DefaultNow, KeyPart, RowId


class OldRows(Base):
    """A file with rows of one kind and month. `first_key` and `last_key` bound its keys.

    Without `kept_at` the file is still being written: its rows are in the database, and the next
    attempt gives the file another key.
    """

    __tablename__ = "old_rows"
    __table_args__ = (
        # No file is written after the account's removal, because no process would delete it.
        ForeignKeyConstraint(["seller_id"], ["account.seller_id"]),
        Index("ix_old_rows_month", "seller_id", "kind", "month"),
        Index(
            "uq_old_rows_written",
            "seller_id",
            "kind",
            unique=True,
            postgresql_where=text("kept_at IS NULL"),
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    kind: Mapped[str]
    month: Mapped[datetime]
    storage_key: Mapped[str]
    rows: Mapped[int] = mapped_column(server_default="0")
    first_key: Mapped[int] = mapped_column(BigInteger, server_default="0")
    last_key: Mapped[int] = mapped_column(BigInteger, server_default="0")
    made_at: Mapped[DefaultNow]
    kept_at: Mapped[datetime | None]
