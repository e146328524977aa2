"""The lock of a sync knows whether order data was uploaded under it: its holder does not get that
work again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0088"
down_revision = "0087"


def upgrade() -> None:
    uploaded = sa.Column("lock_order_data", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("sync_state", uploaded)


def downgrade() -> None:
    op.drop_column("sync_state", "lock_order_data")
