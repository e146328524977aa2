"""Evidence from the network: what each exposed seller offers and sold, by product and cell."""

import sqlalchemy as sa
from alembic import op

from cardsync.database.migrate import shared_table

revision = "0050"
down_revision = "0049"


def number(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def count(name: str) -> sa.Column:
    return sa.Column(name, sa.Integer(), nullable=False)


def upgrade() -> None:
    op.create_table(
        "network_cell",
        number("product_id"),
        sa.Column("cell", sa.SmallInteger(), autoincrement=False, nullable=False),
        number("seller_id"),
        count("listings"),
        number("low", nullable=True),
        count("sales"),
        count("sales_week"),
        number("median", nullable=True),
        sa.Column("newest_sold_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("product_id", "cell", "seller_id", name=op.f("pk_network_cell")),
    )
    op.create_index("ix_network_cell_seller", "network_cell", ["seller_id"])
    op.create_table(
        "network_look",
        number("seller_id"),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_network_look")),
    )
    for table in ("network_cell", "network_look"):
        for statement in shared_table(table):
            op.get_bind().connection.driver_connection.execute(statement)


def downgrade() -> None:
    for table in ("network_look", "network_cell"):
        op.drop_table(table)
