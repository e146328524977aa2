"""Evidence from the network: what each exposed seller offers and sold, by product and cell. Sums of
the imported sales by product and cell, which no reading has to make any more.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.database.migrate import shared_table

revision = "0050"
down_revision = "0049"


SUMS = """
    INSERT INTO market_sum (product_id, cell, median, sales, sales_week, newest_at)
    SELECT s.product_id, s.cell,
           floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY s.price) + 0.5)::bigint, count(*),
           count(*) FILTER (WHERE s.sold_at >= k.sales_at - interval '7 days'), max(s.sold_at)
      FROM market_look k
      JOIN market_sale s ON s.product_id = k.product_id
       AND s.sold_at BETWEEN k.sales_at - interval '30 days' AND k.sales_at
     GROUP BY s.product_id, s.cell
"""


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
    op.create_table(
        "market_sum",
        number("product_id"),
        sa.Column("cell", sa.SmallInteger(), autoincrement=False, nullable=False),
        number("median"),
        count("sales"),
        count("sales_week"),
        sa.Column("newest_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("product_id", "cell", name=op.f("pk_market_sum")),
    )
    connection = op.get_bind().connection.driver_connection
    for table in ("network_cell", "network_look", "market_sum"):
        for statement in shared_table(table):
            connection.execute(statement)
    connection.execute(SUMS)


def downgrade() -> None:
    for table in ("market_sum", "network_look", "network_cell"):
        op.drop_table(table)
