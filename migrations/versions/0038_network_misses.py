"""Counts of references that the network was asked for and did not have; each seller's offers."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    op.create_table(
        "network_miss",
        sa.Column("product_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("caller", sa.LargeBinary(), nullable=False),
        sa.Column("asked_on", sa.Date(), nullable=False),
        sa.PrimaryKeyConstraint("product_id", "caller", name=op.f("pk_network_miss")),
    )
    op.create_index("ix_network_miss_asked_on", "network_miss", ["asked_on"])
    for name in ("printings", "copies"):
        op.add_column(
            "network_seller",
            sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        )
    connection = op.get_bind().connection.driver_connection
    for statement in shared_table("network_miss"):
        connection.execute(statement)
    connection.execute("""
        UPDATE network_seller s SET printings = o.printings, copies = o.copies
          FROM (SELECT seller_id, count(DISTINCT product_id) AS printings, sum(quantity) AS copies
                  FROM network_offer WHERE price IS NOT NULL GROUP BY seller_id) AS o
         WHERE o.seller_id = s.seller_id
    """)


def downgrade() -> None:
    for name in ("printings", "copies"):
        op.drop_column("network_seller", name)
    op.drop_table("network_miss")
