"""Accepted work names the request, and the trace, that asked for it."""

import sqlalchemy as sa
from alembic import op

revision = "0074"
down_revision = "0073"

TABLES = ("upload", "price_run", "price_rollback", "repricing_event", "work_due")
COLUMNS = ("request_id", "traceparent")


def upgrade() -> None:
    for table in TABLES:
        for column in COLUMNS:
            op.add_column(table, sa.Column(column, sa.Text(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        for column in COLUMNS:
            op.drop_column(table, column)
