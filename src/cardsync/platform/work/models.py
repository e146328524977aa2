"""The table `upload`: the accepted files and the state of their import."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, DefaultNow
from cardsync.platform.value_types import JsonObject
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
    stream: Mapped[str]
    kind: Mapped[str] = mapped_column(server_default="inventory")
    state: Mapped[State] = mapped_column(Text, server_default="queued")
    # The presigned key that the caller named (key form); the worker reads only storage_key.
    source_key: Mapped[str | None]
    storage_key: Mapped[str]
    product_line: Mapped[str | None]
    sync_cycle_id: Mapped[str | None]
    exported_at: Mapped[datetime]
    received_at: Mapped[DefaultNow]
    begun_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    # The verdict is stored before the first row is written, so that a restarted run makes the same
    # decision.
    verdict: Mapped[JsonObject | None] = mapped_column(JSONB)
    confirmed: Mapped[bool] = mapped_column(server_default=FALSE)
    report: Mapped[JsonObject] = mapped_column(JSONB, server_default="{}")
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
