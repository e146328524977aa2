"""Tasks that agents claim: their priority, the hash of a claim's token, how the last claim ended;
and the kinds of task that a seller's agent said it can do.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    # No claim was ever handed out, so no token is lost.
    op.drop_column("agent_task", "claim_token")
    op.add_column(
        "agent_task", sa.Column("priority", sa.SmallInteger(), server_default="3", nullable=False)
    )
    op.add_column("agent_task", sa.Column("token_hash", sa.LargeBinary(), nullable=True))
    op.add_column("agent_task", sa.Column("ended_hash", sa.LargeBinary(), nullable=True))
    op.add_column("agent_task", sa.Column("ended_as", sa.Text(), nullable=True))
    op.add_column(
        "sync_state", sa.Column("agent_kinds", postgresql.ARRAY(sa.Text()), nullable=True)
    )
    op.add_column(
        "sync_cycle",
        sa.Column("price_events", postgresql.JSONB(), server_default="[]", nullable=False),
    )
    op.create_index(
        "ix_repricing_event_cycle",
        "repricing_event",
        ["seller_id", "sync_cycle_id"],
        postgresql_where=sa.text("sync_cycle_id IS NOT NULL"),
    )
