"""Which piece of a stream's work was put back, how often and since when, and until when it
rests.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0016"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.add_column("work_due", sa.Column("put_back_id", sa.BigInteger()))
    op.add_column(
        "work_due", sa.Column("put_back_times", sa.Integer(), server_default="0", nullable=False)
    )
    op.add_column("work_due", sa.Column("put_back_since", moment))
    op.add_column("work_due", sa.Column("rests_until", moment))
