"""Cards whose price the last pricing held."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "held_price",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("marketplace_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "marketplace_id", name=op.f("pk_held_price")),
    )
    for statement in tenant_table("held_price"):
        op.execute(statement)
