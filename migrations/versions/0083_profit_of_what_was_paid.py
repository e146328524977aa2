"""Profit counts what the buyer paid: the days whose sales are kept are counted anew, and with them
their customers.
"""

from alembic import op

revision = "0083"
down_revision = "0082"

STALE = (
    "INSERT INTO sales_stale (seller_id, ordered) SELECT seller_id, ordered FROM sales_kept",
    """INSERT INTO work_due (seller_id, stream, due_at)
       SELECT DISTINCT seller_id, 'sales_sums', now() FROM sales_stale
       ON CONFLICT (seller_id, stream) DO UPDATE
          SET due_at = least(work_due.due_at, excluded.due_at)""",
)


def upgrade() -> None:
    for statement in STALE:
        op.execute(statement)


def downgrade() -> None:
    pass
