"""The table of moves that keys, tokens and the automatic mode made, which the loss limits count, and
the budget of an account's losses. A plan keeps no sums of its own any more.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0061"
down_revision = "0060"


def upgrade() -> None:
    op.create_table(
        "automated_move",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("today_moved", sa.BigInteger(), nullable=False),
        sa.Column("worst_moved", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "card_id", "began_at", name=op.f("pk_automated_move")),
    )
    for statement in tenant_table("automated_move"):
        op.execute(statement)
    op.add_column("account", sa.Column("loss_budget", sa.Numeric(12, 4), nullable=True))
    op.drop_column("agent_plan", "lowered")
    op.drop_column("agent_plan", "shop_value")


def downgrade() -> None:
    for name in ("lowered", "shop_value"):
        op.add_column(
            "agent_plan",
            sa.Column(name, sa.BigInteger(), server_default="0", nullable=False),
        )
    op.drop_column("account", "loss_budget")
    op.drop_table("automated_move")
