"""The cards in stock are read in the order of their names. The index has no texts that are too long
for it; another index finds the sellers who have such cards.
"""

from alembic import op

from cardsync.platform.database.migrate import index_concurrently

revision = "0114"
down_revision = "0113"

NAMES = "ix_card_name"
LONG_NAMES = "ix_card_long_name"


def upgrade() -> None:
    short = "NOT gone AND octet_length(search_text) < 2000"
    long = "NOT gone AND octet_length(search_text) >= 2000"
    index_concurrently(NAMES, "card", ["seller_id", "search_text", "id"], where=short)
    index_concurrently(LONG_NAMES, "card", ["seller_id"], where=long)


def downgrade() -> None:
    op.execute(f"DROP INDEX {NAMES}")
    op.execute(f"DROP INDEX {LONG_NAMES}")
