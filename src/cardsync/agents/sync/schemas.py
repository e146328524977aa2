"""The JSON structs of the sync protocol's answers. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from cardsync.agents.releases.update import Update
from cardsync.agents.seller_state.sync_kinds import Kind, Phase, Reason, SyncMode
from cardsync.agents.sync.decision import SyncDecision
from cardsync.agents.sync.planner import Plan
from cardsync.agents.sync.status import SyncStatus
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, struct_of


class ProductLineBody(msgspec.Struct):
    name: str
    """The line in lower case, such as magic, pokemon or yugioh"""
    category_id: int


class Heartbeat(Update, kw_only=True):
    product_lines: list[ProductLineBody]
    has_pending_tasks: bool
    sync_mode: SyncMode
    upload_approved: bool


class Pending(msgspec.Struct, omit_defaults=True):
    action: Literal["sync", "wait"]
    """sync: begin a sync now. wait: poll again later"""
    reason: Annotated[str, Like(Reason)]
    """manual_request, scheduled, no_sync_needed, in_progress or auto_sync_paused"""
    sync_requested: bool
    first_sync: bool | msgspec.UnsetType = msgspec.UNSET
    kind: Annotated[str, Like(Kind)] | msgspec.UnsetType = msgspec.UNSET
    """The kind of sync; only when action is sync"""
    plan: Plan | msgspec.UnsetType = msgspec.UNSET
    """Only for an account that opted in to plans, and an agent that sent its capabilities"""


class PhaseProgress(msgspec.Struct):
    done: int
    """Rows that are committed"""
    total: int
    """All rows"""


class Status(msgspec.Struct):
    sync_in_progress: Annotated[bool, Column("in_progress")]
    last_sync_at: datetime | None
    agent_last_seen_at: datetime | None
    sync_mode: Annotated[str, Like(SyncMode)]
    phase: Annotated[str, Like(Phase)]
    phase_progress: PhaseProgress | None


class Requested(msgspec.Struct):
    status: Literal["requested"]
    """Always requested"""


class Cancelled(msgspec.Struct):
    status: Literal["cancelled", "cancelling"]
    """cancelled: immediately. cancelling: the worker stops at its next commit"""


class UploadApproval(msgspec.Struct):
    status: Literal["ok"]
    """Always ok"""
    upload_approved: bool


def status_body(
    status: SyncStatus,
    last_sync_at: datetime | None,
    last_seen_at: datetime | None,
) -> Status:
    return struct_of(
        Status,
        status,
        last_sync_at=last_sync_at,
        agent_last_seen_at=last_seen_at,
        phase_progress=PhaseProgress(*status.progress) if status.progress else None,
    )


def pending_body(decision: SyncDecision) -> Pending:
    if decision.action == "wait":
        return Pending("wait", decision.reason, decision.sync_requested)
    return Pending(
        "sync",
        decision.reason,
        decision.sync_requested,
        decision.first_sync,
        decision.kind or "full",
        decision.plan or msgspec.UNSET,
    )
