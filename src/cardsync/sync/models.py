"""Tables of the sync protocol: `sync_state` (one row a seller: request, lock, lease, results), `sync_cycle` (logs), `sync_step`,
`debug_screenshot`, and the global `agent_seen`, which web processes flush set-wise across sellers.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Identity, Index, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.accounts.models import FALSE, NOW, Moment
from cardsync.db import Base


class SyncState(Base):
    __tablename__ = "sync_state"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # What the seller asked for and no cycle has taken yet.
    requested_kind: Mapped[str | None] = mapped_column(Text)
    requested_at: Mapped[datetime | None] = mapped_column(Moment)
    # The sync-in-progress lock; held while lock_kind is set.
    lock_kind: Mapped[str | None] = mapped_column(Text)
    lock_trigger: Mapped[str | None] = mapped_column(Text)
    lock_first_sync: Mapped[bool] = mapped_column(server_default=FALSE)
    lock_agent_id: Mapped[str | None] = mapped_column(Text)
    lock_taken_at: Mapped[datetime | None] = mapped_column(Moment)
    lock_refreshed_at: Mapped[datetime | None] = mapped_column(Moment)
    lock_uploaded: Mapped[bool] = mapped_column(server_default=FALSE)
    # The plan that went with the lock, for the holder who asks again.
    lock_plan: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    # The newest cycle handed out, remembered past its lock until its log arrives.
    cycle_trigger: Mapped[str | None] = mapped_column(Text)
    cycle_first_sync: Mapped[bool] = mapped_column(server_default=FALSE)
    # The price-mutation lease; live while lease_expires_at is ahead.
    lease_holder: Mapped[str | None] = mapped_column(Text)
    lease_token: Mapped[str | None] = mapped_column(UUID(as_uuid=False))
    lease_expires_at: Mapped[datetime | None] = mapped_column(Moment)
    cancel_requested_at: Mapped[datetime | None] = mapped_column(Moment)
    work_phase: Mapped[str | None] = mapped_column(Text)
    work_done: Mapped[int] = mapped_column(server_default="0")
    work_total: Mapped[int] = mapped_column(server_default="0")
    # Accepted inventory uploads that are not finished, and the one that waits for the seller's word.
    uploads_open: Mapped[int] = mapped_column(server_default="0")
    review_upload_id: Mapped[int | None] = mapped_column(BigInteger)
    # Results.
    last_sync_at: Mapped[datetime | None] = mapped_column(Moment)
    last_pricing_at: Mapped[datetime | None] = mapped_column(Moment)
    history_fetched_at: Mapped[datetime | None] = mapped_column(Moment)
    scheduled_failures: Mapped[int] = mapped_column(server_default="0")
    last_failure_at: Mapped[datetime | None] = mapped_column(Moment)
    # From when on the agent's open tasks wait for it, price tasks by themselves: agentwork/tasks.py keeps them, the heartbeat reads them.
    tasks_due_at: Mapped[datetime | None] = mapped_column(Moment)
    price_tasks_due_at: Mapped[datetime | None] = mapped_column(Moment)
    # Hash of the set of (id, target) that the export would send; null while a run is changing it.
    export_fingerprint: Mapped[str | None] = mapped_column(Text)
    # Until when the export serves a rollback instead; null when none is ready or served.
    rollback_until: Mapped[datetime | None] = mapped_column(Moment)
    # Until when the export is held back because a rollback is being prepared.
    rollback_preparing_until: Mapped[datetime | None] = mapped_column(Moment)
    # From when on the fingerprint says too much: a sale whose prices are asked for is over then.
    export_until: Mapped[datetime | None] = mapped_column(Moment)
    # The sales that were on when a run was last begun because one started or ended.
    sales_in_force: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), server_default="{}")


class SyncCycle(Base):
    """One agent cycle as the agent reported it. `trigger_source` is ours and is never shown to clients."""

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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    sync_cycle_id: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text)
    placeholder: Mapped[bool] = mapped_column(server_default=FALSE)
    trigger_source: Mapped[str | None] = mapped_column(Text)
    steps: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default="[]")
    agent_version: Mapped[str | None] = mapped_column(Text)
    platform: Mapped[str | None] = mapped_column(Text)
    duration_ms: Mapped[int | None] = mapped_column(BigInteger)
    started_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    logged_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class SyncStep(Base):
    """When each step of the agent's registry last succeeded, as cycle logs told it."""

    __tablename__ = "sync_step"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    last_succeeded_at: Mapped[datetime] = mapped_column(Moment)
    # Whether that was in a cycle handed out with first_sync: then the step's whole history is fetched.
    in_first_sync: Mapped[bool] = mapped_column(server_default=FALSE)


class DebugScreenshot(Base):
    """A picture of the agent's browser, for the seller's members; the PNG itself is in the object store."""

    __tablename__ = "debug_screenshot"
    __table_args__ = (ForeignKeyConstraint(["seller_id", "cycle_id"], ["sync_cycle.seller_id", "sync_cycle.id"]),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    cycle_id: Mapped[int] = mapped_column(BigInteger)
    step_name: Mapped[str | None] = mapped_column(Text)
    page_url: Mapped[str | None] = mapped_column(Text)
    storage_key: Mapped[str] = mapped_column(Text)
    size: Mapped[int]
    captured_at: Mapped[datetime | None] = mapped_column(Moment)
    received_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)


class AgentSeen(Base):
    """Global: when a seller's agent was last heard of. Many sellers' rows are written by one statement a second."""

    __tablename__ = "agent_seen"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    last_seen_at: Mapped[datetime] = mapped_column(Moment)
    version: Mapped[str | None] = mapped_column(Text)
    platform: Mapped[str | None] = mapped_column(Text)
