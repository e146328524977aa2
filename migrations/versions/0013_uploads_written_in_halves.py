"""How often an upload's writing in halves was begun: a writer of an earlier beginning writes
nothing more.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("upload", sa.Column("claims", sa.Integer(), server_default="0", nullable=False))
