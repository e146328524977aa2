"""`agent_task` (tenant): work that waits for a seller's agent: backfills, price pushes,
rollbacks, listings.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import ARRAY, Index, LargeBinary, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, DefaultNow, KeyPart, RowId
from cardsync.platform.value_types import JsonObject

Status = Literal["pending", "claimed", "completed", "failed", "cancelled"]


class AgentTask(Base):
    """`status` is pending, claimed, completed, failed or cancelled."""

    __tablename__ = "agent_task"
    __table_args__ = (
        Index(
            "ix_agent_task_open",
            "seller_id",
            "id",
            postgresql_where=text("status IN ('pending', 'claimed')"),
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    kind: Mapped[str]
    payload: Mapped[JsonObject] = mapped_column(JSONB, server_default="{}")
    status: Mapped[Status] = mapped_column(Text, server_default="pending")
    attempt: Mapped[int] = mapped_column(server_default="0")
    # Lower priorities are claimed first; agentwork/task_kinds.py names them.
    priority: Mapped[int] = mapped_column(SmallInteger, server_default="3")
    # The SHA-256 of the current claim's token; the SHA-256 of the last ended claim's token and the
    # status that its agent reported. A repeated report gets the same answer.
    token_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    ended_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    ended_as: Mapped[str | None]
    claimed_at: Mapped[datetime | None]
    claim_expires_at: Mapped[datetime | None]
    result: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    error: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    # A price push stores the SHA-256 of the files served for it, and the cycles that import its
    # prices.
    files: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    cycles: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    created_at: Mapped[DefaultNow]
    finished_at: Mapped[datetime | None]
