"""Plans of assistants, and which kinds of action may do without a member's click."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    moment, json = sa.DateTime(timezone=True), postgresql.JSONB(astext_type=sa.Text())
    op.create_table(
        "agent_plan",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("plan_key", sa.Text()),
        sa.Column("body_sha256", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("risk", sa.Text()),
        sa.Column("actions", json, nullable=False),
        sa.Column("basis", json, server_default="{}", nullable=False),
        sa.Column("size", json, server_default="{}", nullable=False),
        sa.Column("results", json, server_default="[]", nullable=False),
        sa.Column("drift", json, server_default="[]", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("limit_name", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("expected_status", sa.Text()),
        sa.Column("clicked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("lowered", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("shop_value", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.Column("decided_at", moment),
        sa.Column("decided_by", sa.Text()),
        sa.Column("applied_at", moment),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_agent_plan")),
    )
    op.create_index(
        "uq_agent_plan_key",
        "agent_plan",
        ["seller_id", "plan_key"],
        unique=True,
        postgresql_where=sa.text("plan_key IS NOT NULL"),
    )
    op.create_index("ix_agent_plan_applied", "agent_plan", ["seller_id", "applied_at"])
    op.create_table(
        "plan_permission",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("action_type", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint(
            "seller_id", "credential", "action_type", name=op.f("pk_plan_permission")
        ),
    )
    for table in ("agent_plan", "plan_permission"):
        for statement in tenant_table(table):
            op.get_bind().connection.driver_connection.execute(statement)
