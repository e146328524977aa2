"""A collection says how its file is written, where that is not the usual way."""

import sqlalchemy as sa
from alembic import op

revision = "0097"
down_revision = "0096"


def upgrade() -> None:
    op.add_column("collection", sa.Column("read_as", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    op.drop_column("collection", "read_as")
