"""A webhook knows how often its receiver has failed since it took a message, and until when it is
left alone: each failure makes that longer.
"""

import sqlalchemy as sa
from alembic import op

revision = "0089"
down_revision = "0088"


def upgrade() -> None:
    op.add_column(
        "webhook", sa.Column("failures", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("webhook", sa.Column("rests_until", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("webhook", "rests_until")
    op.drop_column("webhook", "failures")
