"""Marks of kept figures count their starts and failures, as other pieces of work do; the sums of a day
are in `sales_sum` alone. Days that it lacks, or that were left out of date, are marked.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0065"
down_revision = "0064"

UNKNOWN = """
    INSERT INTO sales_stale (seller_id, ordered)
    SELECT d.seller_id, d.day FROM sales_day d
     WHERE d.orders > 0
       AND NOT EXISTS (SELECT FROM sales_kept k
                        WHERE k.seller_id = d.seller_id AND k.ordered = d.day)
       AND NOT EXISTS (SELECT FROM sales_stale t
                        WHERE t.seller_id = d.seller_id AND t.ordered = d.day)
"""
MARKED = """
    INSERT INTO work_due (seller_id, stream, due_at)
    SELECT DISTINCT seller_id, 'sales_sums', now() FROM sales_stale
"""
BACK = """
    INSERT INTO sales_day (seller_id, day, orders, gross, seen_at)
    SELECT k.seller_id, k.ordered, coalesce(sum(s.orders), 0), coalesce(sum(s.gross), 0), k.kept_at
      FROM sales_kept k
      LEFT JOIN sales_sum s ON s.seller_id = k.seller_id AND s.ordered = k.ordered
     WHERE k.ordered > DATE '0001-01-01'
     GROUP BY k.seller_id, k.ordered, k.kept_at
"""


def upgrade() -> None:
    for name in ("attempts", "failures"):
        op.add_column("work_due", sa.Column(name, sa.Integer(), server_default="0", nullable=False))
    connection = op.get_bind().connection.driver_connection
    connection.execute(UNKNOWN)
    connection.execute(MARKED)
    op.drop_table("sales_day")


def downgrade() -> None:
    op.create_table(
        "sales_day",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("orders", sa.Integer(), nullable=False),
        sa.Column("gross", sa.Numeric(20, 4), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "day", name=op.f("pk_sales_day")),
    )
    connection = op.get_bind().connection.driver_connection
    connection.execute(BACK)
    for statement in tenant_table("sales_day"):
        connection.execute(statement)
    connection.execute("DELETE FROM work_due WHERE stream IN ('stock', 'sales_sums')")
    for name in ("attempts", "failures"):
        op.drop_column("work_due", name)
