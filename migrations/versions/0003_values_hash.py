"""A hash of a card's newest observation beside it: what an upload brings again is told from what
is new without reading it back.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column(
        "card", sa.Column("values_hash", sa.BigInteger(), server_default="0", nullable=False)
    )
