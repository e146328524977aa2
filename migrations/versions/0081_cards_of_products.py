"""A seller's cards are found by their product: a shop's buylist asks for those of a few products, and
read all cards.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import op

revision = "0081"
down_revision = "0080"

INDEX = "ix_card_product"


@contextmanager
def patient() -> Iterator[None]:
    """Nobody waits for an index that is built concurrently, so it may wait for others."""
    patience = op.get_bind().exec_driver_sql("SHOW lock_timeout").scalar()
    op.execute("SET lock_timeout = 0")
    try:
        yield
    finally:
        op.execute(f"SET lock_timeout = '{patience}'")


def upgrade() -> None:
    # What a build that was killed has left is no index.
    with op.get_context().autocommit_block(), patient():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.create_index(INDEX, "card", ["seller_id", "product_id"], postgresql_concurrently=True)


def downgrade() -> None:
    op.drop_index(INDEX, "card")
