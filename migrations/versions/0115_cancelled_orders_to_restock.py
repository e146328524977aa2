"""The refunded orders whose cards never left the shop are counted from an index, however many were
refunded after they were shipped. Orders without a refund are not in it.
"""

from alembic import op

from cardsync.platform.database.migrate import index_concurrently

revision = "0115"
down_revision = "0114"

NAME = "ix_orders_to_restock"
WHERE = """refund_amt IS NOT NULL
    AND NOT (
        CASE WHEN refund_type IS NULL THEN coalesce(refund_amt < product_amt, false)
             ELSE refund_type = 'partial' END
        AND coalesce(refund_reason, '') !~* 'return')
    AND NOT (
        shipped_marked_at IS NOT NULL
        OR status_group ~* 'shipped|in transit|delivered'
           AND status_group !~* 'unshipped|not shipped')"""


def upgrade() -> None:
    index_concurrently(NAME, "orders", ["seller_id", "id"], where=WHERE)


def downgrade() -> None:
    op.execute(f"DROP INDEX {NAME}")
