"""The table `upload`: the accepted files and the state of their import."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, NOW, Base, Moment
from cardsync.platform.work.piece import Piece

State = Literal[
    "queued",
    "processing",
    "awaiting_review",
    "done",
    "failed",
    "discarded",
    "cancelled",
]


class Upload(Piece, Base):
    """One accepted file. Rows of one stream are processed in order of id."""

    __tablename__ = "upload"
    __table_args__ = (
        UniqueConstraint("seller_id", "source_key"),
        Index(
            "ix_upload_open",
            "seller_id",
            "stream",
            "id",
            postgresql_where=text("state IN ('queued', 'processing')"),
        ),
    )
    # `stream` is inventory, or orders with `kind` orders, refunds, items or shipping.
    stream: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text, server_default="inventory")
    state: Mapped[State] = mapped_column(Text, server_default="queued")
    # The presigned key that the caller named (key form); the worker reads only storage_key.
    source_key: Mapped[str | None] = mapped_column(Text)
    storage_key: Mapped[str] = mapped_column(Text)
    product_line: Mapped[str | None] = mapped_column(Text)
    sync_cycle_id: Mapped[str | None] = mapped_column(Text)
    exported_at: Mapped[datetime] = mapped_column(Moment)
    received_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    begun_at: Mapped[datetime | None] = mapped_column(Moment)
    finished_at: Mapped[datetime | None] = mapped_column(Moment)
    # The verdict is stored before the first row is written, so that a restarted run decides the
    # same.
    verdict: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    confirmed: Mapped[bool] = mapped_column(server_default=FALSE)
    report: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default="{}")
    error_code: Mapped[str | None] = mapped_column(Text)
    error_message: Mapped[str | None] = mapped_column(Text)
