"""Sums of sales by game know which copies have no price of their own. Every day is counted anew."""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"

# Readers count these days until the worker keeps them, after the next upload of orders.
STALE = """
    INSERT INTO sales_stale (seller_id, ordered)
    SELECT DISTINCT seller_id, ordered FROM sales_game
"""


def upgrade() -> None:
    op.alter_column("sales_game", "gross", nullable=True)
    for name in ("estimated", "unpriced"):
        op.add_column("sales_game", sa.Column(name, sa.BigInteger(), server_default="0"))
        op.alter_column("sales_game", name, nullable=False, server_default=None)
    op.get_bind().connection.driver_connection.execute(STALE)


def downgrade() -> None:
    op.execute("UPDATE sales_game SET gross = 0 WHERE gross IS NULL")
    for name in ("estimated", "unpriced"):
        op.drop_column("sales_game", name)
    op.alter_column("sales_game", "gross", nullable=False)
