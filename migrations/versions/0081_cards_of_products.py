"""A seller's cards are found by their product: a shop's buylist asks for those of a few products, and
read all cards.
"""

from alembic import op

revision = "0081"
down_revision = "0080"

INDEX = "ix_card_product"


def upgrade() -> None:
    # Shops go on meanwhile. What a build that was killed has left is no index.
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.create_index(INDEX, "card", ["seller_id", "product_id"], postgresql_concurrently=True)


def downgrade() -> None:
    op.drop_index(INDEX, "card")
