"""The table `sync_state`: one row per seller with lock, lease and request."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, BigInt, KeyPart
from cardsync.platform.value_types import JsonObject


class SyncState(Base):
    __tablename__ = "sync_state"
    seller_id: Mapped[KeyPart]
    # The seller's request for a sync, until a cycle takes it.
    requested_kind: Mapped[str | None]
    requested_at: Mapped[datetime | None]
    # The sync-in-progress lock; it is taken while lock_kind is set.
    lock_kind: Mapped[str | None]
    lock_trigger: Mapped[str | None]
    lock_first_sync: Mapped[bool] = mapped_column(server_default=FALSE)
    lock_agent_id: Mapped[str | None]
    lock_taken_at: Mapped[datetime | None]
    lock_refreshed_at: Mapped[datetime | None]
    # Whether the cycle uploaded inventory, and whether it uploaded orders or data about orders.
    lock_uploaded: Mapped[bool] = mapped_column(server_default=FALSE)
    lock_order_data: Mapped[bool] = mapped_column(server_default=FALSE)
    # The plan that was returned with the lock, for a holder that polls again.
    lock_plan: Mapped[JsonObject | None] = mapped_column(JSONB)
    # The trigger and first_sync of the newest started cycle, stored after the end of its lock until
    # its log arrives.
    cycle_trigger: Mapped[str | None]
    cycle_first_sync: Mapped[bool] = mapped_column(server_default=FALSE)
    # The price-mutation lease, valid until lease_expires_at.
    lease_holder: Mapped[str | None]
    lease_token: Mapped[str | None] = mapped_column(UUID(as_uuid=False))
    lease_expires_at: Mapped[datetime | None]
    cancel_requested_at: Mapped[datetime | None]
    work_phase: Mapped[str | None]
    work_done: Mapped[int] = mapped_column(server_default="0")
    work_total: Mapped[int] = mapped_column(server_default="0")
    # The number of accepted inventory uploads that are not finished, and the ID of the upload that
    # waits for the seller's decision.
    uploads_open: Mapped[int] = mapped_column(server_default="0")
    review_upload_id: Mapped[BigInt | None]
    # Results of past syncs.
    last_sync_at: Mapped[datetime | None]
    last_pricing_at: Mapped[datetime | None]
    history_fetched_at: Mapped[datetime | None]
    scheduled_failures: Mapped[int] = mapped_column(server_default="0")
    last_failure_at: Mapped[datetime | None]
    # When the agent's earliest task is due, and its earliest price task; agentwork/tasks.py writes
    # both columns, and the heartbeat reads them.
    tasks_due_at: Mapped[datetime | None]
    price_tasks_due_at: Mapped[datetime | None]
    # The kinds of task that the agent last reported; null if it never reported any.
    agent_kinds: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    # The hash of the ids and targets that the export would send; null while a run changes targets.
    export_fingerprint: Mapped[str | None]
    # Increases with each transaction that changes prices, targets or copies of cards, or the cards
    # of the export; a figure of the export with another number is outdated.
    prices_revision: Mapped[BigInt] = mapped_column(server_default="0")
    # The time until which the export serves a rollback instead; null if none is ready or served.
    rollback_until: Mapped[datetime | None]
    # The time until which the export is held because a rollback is being prepared.
    rollback_preparing_until: Mapped[datetime | None]
    # Whether quick adds are published or pending; if not, the export does not read them.
    quick_add_waits: Mapped[bool] = mapped_column(server_default=FALSE)
    # When the fingerprint becomes outdated, because a promotion that set cards' targets ends.
    export_until: Mapped[datetime | None]
    # The promotions that were active when the last run for a promotion's start or end began.
    sales_in_force: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), server_default="{}")
