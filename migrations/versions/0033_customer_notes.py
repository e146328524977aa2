"""Notes on customers, and the returns that were put back into stock."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0033"
down_revision = "0032"


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def moment(name: str) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def upgrade() -> None:
    op.create_table(
        "customer_note",
        seller(),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        moment("updated_at"),
        sa.PrimaryKeyConstraint("seller_id", "key", name=op.f("pk_customer_note")),
    )
    op.create_table(
        "order_restock",
        seller(),
        sa.Column("order_id", sa.BigInteger(), autoincrement=False, nullable=False),
        moment("restocked_at"),
        sa.Column("placed", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "order_id", name=op.f("pk_order_restock")),
        sa.ForeignKeyConstraint(
            ["seller_id", "order_id"],
            ["orders.seller_id", "orders.id"],
            name=op.f("fk_order_restock_seller_id_order_id"),
        ),
    )
    for statement in [*tenant_table("customer_note"), *tenant_table("order_restock")]:
        op.get_bind().connection.driver_connection.execute(statement)
