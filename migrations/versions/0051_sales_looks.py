"""The times at which a product's sales were looked at, so that a backtest takes the sales that were
known on a day. Of what was looked at before, the newest look is known.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0051"
down_revision = "0050"

KNOWN = """
    INSERT INTO market_sales_look (product_id, looked_at)
    SELECT product_id, sales_at FROM market_look WHERE sales_at <= now() ORDER BY product_id
"""


def upgrade() -> None:
    op.create_table(
        "market_sales_look",
        sa.Column("product_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("looked_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("product_id", "looked_at", name=op.f("pk_market_sales_look")),
    )
    connection = op.get_bind().connection.driver_connection
    for statement in shared_table("market_sales_look"):
        connection.execute(statement)
    connection.execute(KNOWN)


def downgrade() -> None:
    op.drop_table("market_sales_look")
