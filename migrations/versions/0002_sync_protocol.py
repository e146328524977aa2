"""The sync protocol in full: credits, agent tasks, step successes, screenshots, releases, rate
limits.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Text
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import shared_table, tenant_table

revision = "0002"
down_revision = "0001"

TENANT = ("agent_task", "credit_transaction", "debug_screenshot", "sync_step")
GLOBAL = ("rate_limit", "release", "release_kill")


def upgrade() -> None:
    create_tables()
    statements = [s for table in TENANT for s in tenant_table(table)] + [
        s for table in GLOBAL for s in shared_table(table)
    ]
    # The ledger is only ever appended to; rows go when their seller is erased.
    for statement in [*statements, "REVOKE UPDATE ON credit_transaction FROM cardsync_app"]:
        op.get_bind().exec_driver_sql(statement)


def create_tables() -> None:
    op.create_table(
        "agent_task",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "payload", postgresql.JSONB(astext_type=Text()), server_default="{}", nullable=False
        ),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("claim_token", sa.UUID(as_uuid=False), nullable=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("result", postgresql.JSONB(astext_type=Text()), nullable=True),
        sa.Column("error", postgresql.JSONB(astext_type=Text()), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_agent_task")),
    )
    op.create_index(
        "ix_agent_task_open",
        "agent_task",
        ["seller_id", "id"],
        unique=False,
        postgresql_where=sa.text("status IN ('pending', 'claimed')"),
    )
    op.create_table(
        "credit_transaction",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.Column("balance_after", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint("balance_after >= 0", name=op.f("ck_credit_transaction_balance_after")),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_credit_transaction")),
    )
    op.create_index(
        "uq_credit_transaction_idempotency_key",
        "credit_transaction",
        ["seller_id", "idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_table(
        "rate_limit",
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("tat", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("bucket", name=op.f("pk_rate_limit")),
        prefixes=["UNLOGGED"],
    )
    op.create_table(
        "release",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("product", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), server_default="stable", nullable=False),
        sa.Column("percentage", sa.Integer(), server_default="100", nullable=False),
        sa.Column("min_from", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("storage_key", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("record_signature", sa.Text(), nullable=False),
        sa.Column(
            "published_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint("percentage BETWEEN 0 AND 100", name=op.f("ck_release_percentage")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release")),
        sa.UniqueConstraint(
            "product",
            "version",
            "platform",
            "channel",
            name=op.f("uq_release_product_version_platform_channel"),
        ),
    )
    op.create_table(
        "release_kill",
        sa.Column("product", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column(
            "killed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("product", "version", name=op.f("pk_release_kill")),
    )
    op.create_table(
        "sync_step",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last_succeeded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("in_first_sync", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "name", name=op.f("pk_sync_step")),
    )
    op.create_table(
        "debug_screenshot",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("cycle_id", sa.BigInteger(), nullable=False),
        sa.Column("step_name", sa.Text(), nullable=True),
        sa.Column("page_url", sa.Text(), nullable=True),
        sa.Column("storage_key", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("captured_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["seller_id", "cycle_id"],
            ["sync_cycle.seller_id", "sync_cycle.id"],
            name=op.f("fk_debug_screenshot_seller_id_cycle_id"),
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_debug_screenshot")),
    )
    op.add_column(
        "account", sa.Column("credit_balance", sa.Integer(), server_default="0", nullable=False)
    )
    op.add_column(
        "sync_state", sa.Column("lock_plan", postgresql.JSONB(astext_type=Text()), nullable=True)
    )
    for name in ("tasks_due_at", "price_tasks_due_at"):
        op.add_column("sync_state", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
