"""Marks of kept figures count their starts and failures, as other pieces of work do."""

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0062"


def upgrade() -> None:
    for name in ("attempts", "failures"):
        op.add_column("work_due", sa.Column(name, sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    for name in ("attempts", "failures"):
        op.drop_column("work_due", name)
