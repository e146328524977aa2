"""The page of the price file reads the cards that it shows, as long as no card has changed since the
figures of the file were computed.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0116"
down_revision = "0115"

TABLE = "price_file_figure"


def upgrade() -> None:
    op.add_column(
        "sync_state",
        sa.Column("prices_revision", sa.BigInteger(), server_default="0", nullable=False),
    )
    op.create_table(
        TABLE,
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stamp", sa.Text(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("raised", sa.Integer(), nullable=False),
        sa.Column("raised_by", sa.Numeric(20, 4), nullable=False),
        sa.Column("lowered", sa.Integer(), nullable=False),
        sa.Column("lowered_by", sa.Numeric(20, 4), nullable=False),
        sa.Column("first_prices", sa.Integer(), nullable=False),
        sa.Column("largest", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_price_file_figure")),
    )
    for statement in tenant_table(TABLE):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DELETE FROM work_due WHERE stream = 'price_file'")
    op.drop_table(TABLE)
    op.drop_column("sync_state", "prices_revision")
