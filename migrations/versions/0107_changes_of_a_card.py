"""The price changes of a card are found by the card."""

from alembic import op

revision = "0107"
down_revision = "0106"

INDEX = "ix_price_change_card"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY {INDEX} ON price_change (seller_id, card_id, run_id)"
        )


def downgrade() -> None:
    op.execute(f"DROP INDEX {INDEX}")
