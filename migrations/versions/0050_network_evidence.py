"""Evidence from the network: what each exposed seller offers and sold, by product and cell. The
newest of each product's imported market, packed, so that a run reads one row for each product.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0050"
down_revision = "0049"


def packed(*numbers: str) -> str:
    return " || ".join(f"int8send(({number})::bigint)" for number in numbers)


def microseconds(column: str) -> str:
    return f"coalesce(date_part('epoch', {column}) * 1000000, 0)"


CELL = packed(
    "product_id", "cell", "low", "listings", "median", "sales", "sales_week",
    microseconds("newest_at"),
)  # fmt: skip
LOOK = packed(
    "k.product_id", "0", microseconds("k.sales_at"), microseconds("k.listings_at"),
    "(EXISTS (SELECT FROM market_listing f WHERE f.product_id = k.product_id"
    " AND f.observed_at < k.listings_at))::integer",
    "0", "0", "0",
)  # fmt: skip
# Each earlier supply is taken for a fall: the next import of the product looks more closely.
NEWEST = f"""
    INSERT INTO market_newest (product_id, packed)
    SELECT k.product_id, {LOOK} || coalesce(c.packed, ''::bytea)
      FROM market_look k LEFT JOIN (
        SELECT product_id, string_agg({CELL}, ''::bytea ORDER BY cell) AS packed
          FROM (
            SELECT product_id, cell, max(low) AS low, max(listings) AS listings,
                   max(median) AS median, max(sales) AS sales, max(sales_week) AS sales_week,
                   max(newest_at) AS newest_at
              FROM (
                SELECT l.product_id, l.cell, l.low, l.listings, 0 AS median, 0 AS sales,
                       0 AS sales_week, NULL::timestamptz AS newest_at
                  FROM market_listing l
                  JOIN market_look n ON n.product_id = l.product_id
                                    AND n.listings_at = l.observed_at
                 UNION ALL
                SELECT s.product_id, s.cell, 0, 0,
                       floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY s.price) + 0.5)::bigint,
                       count(*), count(*) FILTER (WHERE s.sold_at >= n.sales_at - interval '7 days'),
                       max(s.sold_at)
                  FROM market_look n
                  JOIN market_sale s ON s.product_id = n.product_id
                   AND s.sold_at BETWEEN n.sales_at - interval '30 days' AND n.sales_at
                 GROUP BY s.product_id, s.cell) both_kinds
             GROUP BY product_id, cell) cells
         GROUP BY product_id) c ON c.product_id = k.product_id
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
        "market_newest",
        number("product_id"),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("product_id", name=op.f("pk_market_newest")),
    )
    connection = op.get_bind().connection.driver_connection
    for table in ("network_cell", "network_look", "market_newest"):
        for statement in shared_table(table):
            connection.execute(statement)
    connection.execute(NEWEST)


def downgrade() -> None:
    for table in ("market_newest", "network_look", "network_cell"):
        op.drop_table(table)
