"""Orders are found by parts of their numbers and of their buyers' names without reading all orders:
the grams of their search texts. The worker stores them, part by part.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0113"
down_revision = "0112"

TABLES = ("order_search_part", "order_search_gram")
# The sales of these shops are kept, so they have orders.
DUE = """
    INSERT INTO work_due (seller_id, stream, due_at)
    SELECT DISTINCT seller_id, 'order_search', now() FROM order_tally
    ON CONFLICT (seller_id, stream) DO NOTHING
"""


def big(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def upgrade() -> None:
    op.create_table(
        "order_search_part",
        big("seller_id"),
        big("after_id"),
        big("last_id"),
        sa.Column("orders", sa.Integer(), nullable=False),
        sa.Column("ids", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "after_id", name=op.f("pk_order_search_part")),
    )
    op.create_table(
        "order_search_gram",
        big("seller_id"),
        sa.Column("gram", sa.Integer(), autoincrement=False, nullable=False),
        big("after_id"),
        sa.Column("places", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "gram", "after_id", name=op.f("pk_order_search_gram")),
    )
    run = op.get_bind().exec_driver_sql
    for statement in [one for table in TABLES for one in tenant_table(table)]:
        run(statement)
    run(DUE)


def downgrade() -> None:
    op.execute("DELETE FROM work_due WHERE stream = 'order_search'")
    for table in TABLES:
        op.drop_table(table)
