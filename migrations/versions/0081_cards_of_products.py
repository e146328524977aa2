"""An index finds a seller's cards by their product. A search of the buylist asks for the cards of a
few products; without the index it read all of them.
"""

from alembic import op

from cardsync.platform.database.migrate import index_concurrently

revision = "0081"
down_revision = "0080"

INDEX = "ix_card_product"


def upgrade() -> None:
    index_concurrently(INDEX, "card", ["seller_id", "product_id"])


def downgrade() -> None:
    op.drop_index(INDEX, "card")
