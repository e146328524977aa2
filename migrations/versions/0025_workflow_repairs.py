"""Repairs of the agent's workflows: what a seller asked for and verified, and what holds for
all.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import shared_table, tenant_table

revision = "0025"
down_revision = "0024"


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def number() -> sa.Column:
    return sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False)


def texts(*names: str, nullable: bool = False) -> list[sa.Column]:
    return [sa.Column(name, sa.Text(), nullable=nullable) for name in names]


def hashes(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.LargeBinary(), nullable=False) for name in names]


def moments(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=True) for name in names]


def written(name: str) -> sa.Column:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def upgrade() -> None:
    op.create_table(
        "workflow_correction",
        seller(),
        number(),
        *hashes("digest", "lookup"),
        *texts("workflow", "step_name", "old_selector", "selector"),
        sa.Column("confidence", sa.Double(), nullable=False),
        *texts("state"),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        *texts("last_error", nullable=True),
        sa.Column("seen", postgresql.JSONB(), nullable=True),
        written("created_at"),
        *moments("verified_at", "disabled_at"),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_workflow_correction")),
    )
    correction = "workflow_correction"
    op.create_index(f"uq_{correction}_digest", correction, ["seller_id", "digest"], unique=True)
    op.create_index(f"ix_{correction}_lookup", correction, ["seller_id", "lookup"])
    op.create_index(f"ix_{correction}_step", correction, ["seller_id", "workflow", "step_name"])
    op.create_table(
        "workflow_heal",
        seller(),
        number(),
        *texts("workflow", "step_name", "selector", "page_url"),
        sa.Column("snippet_bytes", sa.Integer(), nullable=False),
        *texts("outcome"),
        *texts("reason", nullable=True),
        sa.Column("margin", sa.Double(), nullable=True),
        sa.Column("correction_id", sa.BigInteger(), nullable=True),
        *texts("screenshot_key", nullable=True),
        sa.Column("screenshot_bytes", sa.Integer(), nullable=True),
        written("received_at"),
        sa.ForeignKeyConstraint(
            ["seller_id", "correction_id"],
            ["workflow_correction.seller_id", "workflow_correction.id"],
            name=op.f("fk_workflow_heal_seller_id_correction_id"),
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_workflow_heal")),
    )
    op.create_index("ix_workflow_heal_received", "workflow_heal", ["seller_id", "received_at"])
    op.create_table(
        "shared_repair",
        *hashes("digest", "lookup"),
        *texts("selector", nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        *moments("shared_at", "disabled_at"),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_shared_repair")),
    )
    op.create_index(
        "ix_shared_repair_lookup",
        "shared_repair",
        ["lookup"],
        postgresql_where=sa.text("shared_at IS NOT NULL"),
    )
    op.create_table(
        "shared_repair_vote",
        *hashes("digest"),
        seller(),
        *moments("verified_at", "failed_at"),
        sa.PrimaryKeyConstraint("digest", "seller_id", name=op.f("pk_shared_repair_vote")),
    )
    op.create_index("ix_shared_repair_vote_seller_id", "shared_repair_vote", ["seller_id"])
    statements = [
        *tenant_table("workflow_correction"),
        *tenant_table("workflow_heal"),
        *shared_table("shared_repair"),
        *shared_table("shared_repair_vote"),
    ]
    for statement in statements:
        op.get_bind().connection.driver_connection.execute(statement)
