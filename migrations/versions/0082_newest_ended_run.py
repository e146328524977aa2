"""An index finds the run of a seller that ended last, which each status asks for. Without it, the
runs of all years were read.
"""

from alembic import op

from cardsync.platform.database.migrate import index_concurrently

revision = "0082"
down_revision = "0081"

INDEX = "ix_price_run_ended"


def upgrade() -> None:
    index_concurrently(INDEX, "price_run", ["seller_id", "finished_at", "id"])


def downgrade() -> None:
    op.drop_index(INDEX, "price_run")
