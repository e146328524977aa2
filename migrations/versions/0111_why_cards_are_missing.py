"""Why a card of a pull is missing, the copy that went in its place, and its seller's note."""

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0110"

TABLE = "pull_session_item"
ADDED = ("missing_reason", "missing_copy", "missing_note")


def upgrade() -> None:
    for name in ADDED:
        op.add_column(TABLE, sa.Column(name, sa.Text(), nullable=True))
    op.create_check_constraint(
        op.f("ck_pull_session_item_missing_reason"),
        TABLE,
        "missing_reason IN ('not_there', 'damaged', 'other_card')",
    )


def downgrade() -> None:
    for name in ADDED:
        op.drop_column(TABLE, name)
