"""Prices brought back to what they were, and what the agents report of prices imported."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0010"
down_revision = "0009"


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def identity() -> sa.Column:
    return sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False)


def moment(name: str, *, given: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=not given)


def money(name: str, *, given: bool = False) -> sa.Column:
    return sa.Column(name, sa.Numeric(precision=12, scale=4), nullable=not given)


def upgrade() -> None:
    op.add_column("sync_state", moment("rollback_until"))
    op.create_table(
        "price_rollback",
        seller(),
        identity(),
        sa.Column("state", sa.Text(), server_default="requested", nullable=False),
        sa.Column("scope", postgresql.JSONB(), nullable=False),
        sa.Column("cards", sa.Integer(), server_default="0", nullable=False),
        sa.Column("prepared_to", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("files", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        moment("requested_at", given=True),
        moment("ready_at"),
        moment("served_at"),
        moment("finished_at"),
        moment("expires_at", given=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_price_rollback")),
    )
    op.create_index(
        "uq_price_rollback_open",
        "price_rollback",
        ["seller_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('requested', 'ready', 'served')"),
    )
    op.create_table(
        "price_rollback_card",
        seller(),
        sa.Column("rollback_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card_id", sa.BigInteger(), autoincrement=False, nullable=False),
        money("price", given=True),
        money("current_price"),
        money("target_price"),
        sa.PrimaryKeyConstraint(
            "seller_id", "rollback_id", "card_id", name=op.f("pk_price_rollback_card")
        ),
    )
    op.create_table(
        "repricing_event",
        seller(),
        identity(),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("sync_cycle_id", sa.Text(), nullable=True),
        sa.Column("file_sha256", sa.Text(), nullable=True),
        sa.Column("rollback_id", sa.BigInteger(), nullable=True),
        sa.Column("row_count", sa.Integer(), nullable=False),
        sa.Column("rows", postgresql.JSONB(), nullable=True),
        sa.Column("step", sa.Text(), nullable=True),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        sa.Column("moved", sa.Integer(), server_default="0", nullable=False),
        moment("imported_at", given=True),
        moment("recorded_at", given=True),
        moment("settled_at"),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_repricing_event")),
    )
    op.create_index("uq_repricing_event_key", "repricing_event", ["seller_id", "key"], unique=True)
    op.create_index(
        "ix_repricing_event_open",
        "repricing_event",
        ["seller_id", "id"],
        postgresql_where=sa.text("settled_at IS NULL"),
    )
    for table in ("price_rollback", "price_rollback_card", "repricing_event"):
        for statement in tenant_table(table):
            op.get_bind().connection.driver_connection.execute(statement)
