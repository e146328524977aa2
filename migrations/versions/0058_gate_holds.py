"""Cards whose price the market gate of their rule did not let through, as the last run left them."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0058"
down_revision = "0056"


def upgrade() -> None:
    op.create_table(
        "gate_hold",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("marketplace_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "marketplace_id", name=op.f("pk_gate_hold")),
    )
    for statement in tenant_table("gate_hold"):
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("gate_hold")
