"""An index finds the run of a seller that ended last, which each status asks for. Without it, the
runs of all years were read.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import op

revision = "0082"
down_revision = "0081"

INDEX = "ix_price_run_ended"


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
        op.create_index(
            INDEX, "price_run", ["seller_id", "finished_at", "id"], postgresql_concurrently=True
        )


def downgrade() -> None:
    op.drop_index(INDEX, "price_run")
