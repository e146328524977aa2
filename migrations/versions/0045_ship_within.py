"""The working days within which a seller's orders leave."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    days = sa.Column("ship_within_days", sa.Integer(), server_default="3", nullable=False)
    op.add_column("account", days)


def downgrade() -> None:
    op.drop_column("account", "ship_within_days")
