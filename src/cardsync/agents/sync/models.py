"""Tables of the sync protocol: `sync_cycle` (logs), `sync_step`, `debug_screenshot`, and the global
`agent_seen`, into which web processes write many sellers' rows at once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import ForeignKeyConstraint, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, BigInt, DefaultNow, KeyPart, RowId
from cardsync.platform.value_types import JsonObject

CycleStatus = Literal["success", "partial", "failed", "cancelled"]


class SyncCycle(Base):
    """One agent cycle as the agent reported it.

    `trigger_source` is internal and never shown to clients.
    """

    __tablename__ = "sync_cycle"
    __table_args__ = (
        Index(
            "uq_sync_cycle_client_id",
            "seller_id",
            "sync_cycle_id",
            unique=True,
            postgresql_where=text("sync_cycle_id IS NOT NULL"),
        ),
        Index("ix_sync_cycle_recent", "seller_id", text("started_at DESC")),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    sync_cycle_id: Mapped[str | None]
    status: Mapped[CycleStatus] = mapped_column(Text)
    placeholder: Mapped[bool] = mapped_column(server_default=FALSE)
    trigger_source: Mapped[str | None]
    steps: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default="[]")
    # Reports about price files that the cycle imported or could not import.
    price_events: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default="[]")
    agent_version: Mapped[str | None]
    platform: Mapped[str | None]
    duration_ms: Mapped[BigInt | None]
    started_at: Mapped[DefaultNow]
    logged_at: Mapped[DefaultNow]


class SyncStep(Base):
    """The time when each step of the agent's registry last succeeded, as cycle logs reported it."""

    __tablename__ = "sync_step"
    seller_id: Mapped[KeyPart]
    name: Mapped[str] = mapped_column(primary_key=True)
    last_succeeded_at: Mapped[datetime]
    # Whether the step succeeded in a first sync, in which it fetches the whole history.
    in_first_sync: Mapped[bool] = mapped_column(server_default=FALSE)


class DebugScreenshot(Base):
    """A picture of the agent's browser, for the seller's members; the PNG itself is in the object
    store.
    """

    __tablename__ = "debug_screenshot"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "cycle_id"], ["sync_cycle.seller_id", "sync_cycle.id"]),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    cycle_id: Mapped[BigInt]
    step_name: Mapped[str | None]
    page_url: Mapped[str | None]
    storage_key: Mapped[str]
    size: Mapped[int]
    captured_at: Mapped[datetime | None]
    received_at: Mapped[DefaultNow]


class AgentSeen(Base):
    """When a seller's agent last called, and why it waits for its person; an empty `your_turn`
    means that it does not wait.

    The table is global: one statement per second writes many sellers' rows.
    """

    __tablename__ = "agent_seen"
    seller_id: Mapped[KeyPart]
    last_seen_at: Mapped[datetime]
    version: Mapped[str | None]
    platform: Mapped[str | None]
    your_turn: Mapped[str | None]
    your_turn_host: Mapped[str | None]
    your_turn_since: Mapped[datetime | None]
