"""The number of times that an upload's writing in halves was begun goes: each upload is written in
one transaction.
"""

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    op.drop_column("upload", "claims")


def downgrade() -> None:
    op.add_column("upload", sa.Column("claims", sa.Integer(), server_default="0", nullable=False))
