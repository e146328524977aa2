"""An index finds a seller's cards by their product. A search of the buylist asks for the cards of a
few products; without the index it read all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import op

revision = "0081"
down_revision = "0080"

INDEX = "ix_card_product"


@contextmanager
def patient() -> Iterator[None]:
    """Lift the lock timeout: a concurrent build makes no one wait, so it may wait itself."""
    patience = op.get_bind().exec_driver_sql("SHOW lock_timeout").scalar()
    op.execute("SET lock_timeout = 0")
    try:
        yield
    finally:
        op.execute(f"SET lock_timeout = '{patience}'")


def upgrade() -> None:
    # A build that was killed leaves an index that is not valid.
    with op.get_context().autocommit_block(), patient():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.create_index(INDEX, "card", ["seller_id", "product_id"], postgresql_concurrently=True)


def downgrade() -> None:
    op.drop_index(INDEX, "card")
