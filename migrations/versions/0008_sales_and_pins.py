"""Temporary sales on what the rules ask, and prices that a seller fixed."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0008"
down_revision = "0007"


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def written(name: str) -> sa.Column:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def upgrade() -> None:
    op.create_table(
        "pricing_sale",
        seller(),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("query", sa.Text(), server_default="", nullable=False),
        sa.Column("adjust_bp", sa.Integer(), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("floor", sa.Numeric(precision=12, scale=4), nullable=True),
        written("created_at"),
        written("updated_at"),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_pricing_sale")),
    )
    op.create_table(
        "pinned_price",
        seller(),
        sa.Column("marketplace_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("price", sa.Numeric(precision=12, scale=4), nullable=False),
        written("created_at"),
        sa.PrimaryKeyConstraint("seller_id", "marketplace_id", name=op.f("pk_pinned_price")),
    )
    for table in ("pricing_sale", "pinned_price"):
        for statement in tenant_table(table):
            op.get_bind().connection.driver_connection.execute(statement)
