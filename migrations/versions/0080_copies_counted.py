"""A line of an offer keeps how many copies the shop held when it was priced, and a line of an order
how many of its copies are back in stock. The profit of each customer is kept with the other sums.
"""

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0079"

# The days whose sales are kept are counted anew, and with them their customers.
STALE = (
    "INSERT INTO sales_stale (seller_id, ordered) SELECT seller_id, ordered FROM sales_kept",
    """INSERT INTO work_due (seller_id, stream, due_at)
       SELECT DISTINCT seller_id, 'sales_sums', now() FROM sales_stale
       ON CONFLICT (seller_id, stream) DO UPDATE
          SET due_at = least(work_due.due_at, excluded.due_at)""",
)
KINDS = {"pieces": sa.BigInteger, "costed": sa.BigInteger, "profit": sa.Numeric}
EARNED = [(table, name) for table in ("customer_order", "customer_sum") for name in KINDS]


def upgrade() -> None:
    op.add_column("buying_offer_line", sa.Column("held", sa.BigInteger(), nullable=True))
    restocked = sa.Column("restocked", sa.Integer(), server_default="0", nullable=False)
    op.add_column("order_item", restocked)
    for table, name in EARNED:
        column = sa.Column(name, KINDS[name](), server_default="0", nullable=False)
        op.add_column(table, column)
    for statement in STALE:
        op.execute(statement)


def downgrade() -> None:
    for table, name in EARNED:
        op.drop_column(table, name)
    op.drop_column("order_item", "restocked")
    op.drop_column("buying_offer_line", "held")
