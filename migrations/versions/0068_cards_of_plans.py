"""A plan keeps the cards that it moves furthest."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0068"
down_revision = "0067"


def upgrade() -> None:
    op.add_column(
        "agent_plan",
        sa.Column("cards", JSONB(), server_default="[]", nullable=False),
    )


def downgrade() -> None:
    op.drop_column("agent_plan", "cards")
