"""Profit is kept by the pricing rule that set the price; the days whose sales are kept are counted
anew.
"""

from alembic import op

revision = "0108"
down_revision = "0107"

KEY = "seller_id, ordered, day, game"
STALE = (
    "INSERT INTO sales_stale (seller_id, ordered) SELECT seller_id, ordered FROM sales_kept",
    """INSERT INTO work_due (seller_id, stream, due_at)
       SELECT DISTINCT seller_id, 'sales_sums', now() FROM sales_stale
       ON CONFLICT (seller_id, stream) DO UPDATE
          SET due_at = least(work_due.due_at, excluded.due_at)""",
)


def rekey(columns: str) -> None:
    op.execute("ALTER TABLE profit_sum DROP CONSTRAINT pk_profit_sum")
    op.execute(f"ALTER TABLE profit_sum ADD CONSTRAINT pk_profit_sum PRIMARY KEY ({columns})")


def upgrade() -> None:
    op.execute("ALTER TABLE profit_sum ADD COLUMN rule_id bigint NOT NULL DEFAULT -1")
    rekey(f"{KEY}, rule_id")
    for statement in STALE:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DELETE FROM profit_sum")
    op.execute("ALTER TABLE profit_sum DROP COLUMN rule_id CASCADE")
    op.execute(f"ALTER TABLE profit_sum ADD CONSTRAINT pk_profit_sum PRIMARY KEY ({KEY})")
    for statement in STALE:
        op.execute(statement)
