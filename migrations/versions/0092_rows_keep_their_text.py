"""A row of a collection that was not read, or is left out, keeps its text and the reason; a line of
a file can be two cards.
"""

import sqlalchemy as sa
from alembic import op

revision = "0092"
down_revision = "0091"


def upgrade() -> None:
    op.add_column("collection_row", sa.Column("line", sa.BigInteger(), nullable=True))
    for name in ("reason", "text"):
        op.add_column(
            "collection_row", sa.Column(name, sa.Text(), server_default="", nullable=False)
        )


def downgrade() -> None:
    for name in ("text", "reason", "line"):
        op.drop_column("collection_row", name)
