"""Figures of the stock that Today shows, kept by the workers; rejected listings by an index."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0026"
down_revision = "0025"


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def moment(name: str, *, given: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=not given)


def counts(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.Integer(), nullable=False) for name in names]


def sums(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.Numeric(20, 4), nullable=False) for name in names]


def upgrade() -> None:
    op.create_table(
        "listed_value",
        seller(),
        sa.Column("product_line", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        *counts("cards"),
        sa.Column("copies", sa.BigInteger(), nullable=False),
        *sums("listed", "market"),
        moment("seen_at", given=True),
        sa.PrimaryKeyConstraint("seller_id", "product_line", "day", name=op.f("pk_listed_value")),
    )
    op.create_table(
        "shop_figures",
        seller(),
        moment("seen_at", given=True),
        *counts("held"),
        *sums("held_value"),
        moment("held_since"),
        *counts("dropped"),
        *sums("dropped_value"),
        moment("dropped_since"),
        *counts("asked"),
        *sums("asked_value"),
        moment("asked_since"),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        *counts("rises"),
        *sums("rises_value"),
        *counts("falls"),
        *sums("falls_value"),
        sa.Column("movers", postgresql.JSONB(), nullable=True),
        moment("movers_at"),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_shop_figures")),
    )
    op.create_table(
        "sales_day",
        seller(),
        sa.Column("day", sa.Date(), nullable=False),
        *counts("orders"),
        *sums("gross"),
        moment("seen_at", given=True),
        sa.PrimaryKeyConstraint("seller_id", "day", name=op.f("pk_sales_day")),
    )
    op.create_index(
        "ix_quick_add_rejected",
        "quick_add",
        ["seller_id"],
        postgresql_where=sa.text("status = 'rejected'"),
    )
    for table in ("listed_value", "shop_figures", "sales_day"):
        for statement in tenant_table(table):
            op.get_bind().connection.driver_connection.execute(statement)
