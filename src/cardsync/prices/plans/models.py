"""Tables of plans: `agent_plan` (the proposals of assistants and their outcomes) and
`plan_permission` (the kinds of action that a credential may do without a member's click).
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, KeyPart, RowId
from cardsync.platform.value_types import Json, JsonObject

Outcome = Literal[
    "applied",
    "previewed",
    "pending_review",
    "refused_by_grant",
    "refused_by_limit",
    "drifted",
    "declined",
    "expired",
]


class AgentPlan(Base):
    """A plan of an assistant and its outcome, `status`. Amounts are in ten-thousandths of
    a dollar.
    """

    __tablename__ = "agent_plan"
    __table_args__ = (
        Index(
            "uq_agent_plan_key",
            "seller_id",
            "plan_key",
            unique=True,
            postgresql_where=text("plan_key IS NOT NULL"),
        ),
        Index("ix_agent_plan_applied", "seller_id", "applied_at"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    plan_key: Mapped[str | None]
    # The digest of the body. A request with the same key and another body is refused.
    body_sha256: Mapped[str]
    actor: Mapped[str]
    status: Mapped[Outcome] = mapped_column(Text)
    risk: Mapped[str | None]
    actions: Mapped[list[Json]] = mapped_column(JSONB)
    # The state of the named rules, pins and lists when the plan was judged, and the size of the
    # change.
    basis: Mapped[JsonObject] = mapped_column(JSONB, server_default="{}")
    size: Mapped[JsonObject] = mapped_column(JSONB, server_default="{}")
    results: Mapped[list[Json]] = mapped_column(JSONB, server_default="[]")
    # The cards that the plan moves furthest (`schemas.CardMove`).
    cards: Mapped[list[Json]] = mapped_column(JSONB, server_default="[]")
    drift: Mapped[list[Json]] = mapped_column(JSONB, server_default="[]")
    # A member's click names the revision that the member saw.
    revision: Mapped[int] = mapped_column(Integer, server_default="1")
    limit_name: Mapped[str | None]
    error: Mapped[str | None]
    expected_status: Mapped[Outcome | None] = mapped_column(Text)
    clicked: Mapped[bool] = mapped_column(server_default=FALSE)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None]
    applied_at: Mapped[datetime | None]


class PlanPermission(Base):
    """A permission mode that the owner set. Without a row, the credential's default applies."""

    __tablename__ = "plan_permission"
    seller_id: Mapped[KeyPart]
    credential: Mapped[str] = mapped_column(primary_key=True)
    action_type: Mapped[str] = mapped_column(primary_key=True)
    mode: Mapped[str]
    updated_at: Mapped[datetime]
