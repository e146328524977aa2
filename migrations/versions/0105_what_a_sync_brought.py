"""An event of imported prices keeps what they brought."""

from alembic import op

revision = "0105"
down_revision = "0104"


def upgrade() -> None:
    op.execute("ALTER TABLE repricing_event ADD COLUMN brought jsonb")


def downgrade() -> None:
    op.execute("ALTER TABLE repricing_event DROP COLUMN brought")
