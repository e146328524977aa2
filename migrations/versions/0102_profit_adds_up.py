"""Profit keeps the parts that it counts, and the fees that are estimated; the days whose sales are
kept are counted anew, and with them their customers.
"""

from alembic import op

revision = "0102"
down_revision = "0101"

COUNTS = ("bare",)
AMOUNTS = ("estimated", "counted_received", "counted_fees", "counted_postage")
STALE = (
    "INSERT INTO sales_stale (seller_id, ordered) SELECT seller_id, ordered FROM sales_kept",
    """INSERT INTO work_due (seller_id, stream, due_at)
       SELECT DISTINCT seller_id, 'sales_sums', now() FROM sales_stale
       ON CONFLICT (seller_id, stream) DO UPDATE
          SET due_at = least(work_due.due_at, excluded.due_at)""",
)


def upgrade() -> None:
    columns = [f"ADD COLUMN {name} bigint NOT NULL DEFAULT 0" for name in COUNTS]
    columns += [f"ADD COLUMN {name} numeric NOT NULL DEFAULT 0" for name in AMOUNTS]
    op.execute(f"ALTER TABLE profit_sum {', '.join(columns)}")
    for statement in STALE:
        op.execute(statement)


def downgrade() -> None:
    columns = ", ".join(f"DROP COLUMN {name}" for name in COUNTS + AMOUNTS)
    op.execute(f"ALTER TABLE profit_sum {columns}")
