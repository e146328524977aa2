"""How often each price run, rollback and event of imported prices was begun, and how often it
failed by itself: uploads count the same.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    for table in ("price_run", "price_rollback", "repricing_event"):
        for name in ("attempts", "failures"):
            op.add_column(table, sa.Column(name, sa.Integer(), server_default="0", nullable=False))
