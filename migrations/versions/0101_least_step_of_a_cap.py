"""A cap lets a price move by so much at least."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"


def upgrade() -> None:
    op.add_column(
        "account",
        sa.Column("minimum_cap_step", sa.Numeric(12, 4), server_default="0.05", nullable=False),
    )


def downgrade() -> None:
    op.drop_column("account", "minimum_cap_step")
