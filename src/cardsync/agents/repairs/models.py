"""Tables of repairs of the agent's workflows.

`workflow_heal` and `workflow_correction` (tenant) contain each seller's requests and corrections,
`shared_repair` and `shared_repair_vote` (global) the repairs for all sellers and the verdicts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import (
    BigInteger,
    Double,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId
from cardsync.platform.value_types import JsonObject

State = Literal["proposed", "verified", "disabled"]


class WorkflowCorrection(Base):
    """One selector that replaces another. `state` is proposed, verified or disabled.

    `lookup` is the SHA-256 of workflow, step and old selector; `digest` is the hash of the same and
    of the new selector. `seen` is the element's appearance in the snippet, null if the snippet did
    not contain the element.
    """

    __tablename__ = "workflow_correction"
    __table_args__ = (
        Index("uq_workflow_correction_digest", "seller_id", "digest", unique=True),
        Index("ix_workflow_correction_lookup", "seller_id", "lookup"),
        Index("ix_workflow_correction_step", "seller_id", "workflow", "step_name"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    lookup: Mapped[bytes] = mapped_column(LargeBinary)
    workflow: Mapped[str]
    step_name: Mapped[str]
    old_selector: Mapped[str]
    selector: Mapped[str]
    confidence: Mapped[float] = mapped_column(Double)
    state: Mapped[State] = mapped_column(Text)
    failures: Mapped[int] = mapped_column(server_default="0")
    last_error: Mapped[str | None]
    seen: Mapped[JsonObject | None] = mapped_column(JSONB)
    created_at: Mapped[DefaultNow]
    verified_at: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]


class WorkflowHeal(Base):
    """One agent's request for a new selector. `outcome` is cached, proposed or gone."""

    __tablename__ = "workflow_heal"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "correction_id"],
            ["workflow_correction.seller_id", "workflow_correction.id"],
        ),
        Index("ix_workflow_heal_received", "seller_id", "received_at"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    workflow: Mapped[str]
    step_name: Mapped[str]
    selector: Mapped[str]
    page_url: Mapped[str]
    snippet_bytes: Mapped[int]
    outcome: Mapped[str]
    reason: Mapped[str | None]
    margin: Mapped[float | None] = mapped_column(Double)
    correction_id: Mapped[BigInt | None]
    screenshot_key: Mapped[str | None]
    screenshot_bytes: Mapped[int | None]
    received_at: Mapped[DefaultNow]


class SharedRepair(Base):
    """A repair for all sellers. `selector` and `confidence` are null until enough sellers verified
    the same repair: before that, the selector may contain one seller's own text.
    """

    __tablename__ = "shared_repair"
    __table_args__ = (
        Index("ix_shared_repair_lookup", "lookup", postgresql_where=text("shared_at IS NOT NULL")),
    )
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    lookup: Mapped[bytes] = mapped_column(LargeBinary)
    selector: Mapped[str | None]
    confidence: Mapped[float | None] = mapped_column(Double)
    shared_at: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]


class SharedRepairVote(Base):
    """One seller's verdict on a shared repair: verified, failed or both. The table is global."""

    __tablename__ = "shared_repair_vote"
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    seller_id: Mapped[int] = mapped_column(
        BigInteger,
        primary_key=True,
        autoincrement=False,
        index=True,
    )
    verified_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
