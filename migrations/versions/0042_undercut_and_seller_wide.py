"""The seller-wide floor, scope and adder of pricing."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    op.add_column("account", sa.Column("hard_floor", sa.Numeric(12, 4), nullable=True))
    op.add_column(
        "account",
        sa.Column("repricing_scope", sa.Text(), server_default="all_games", nullable=False),
    )
    op.add_column("account", sa.Column("shipping_adder", sa.Numeric(12, 4), nullable=True))


def downgrade() -> None:
    for column in ("shipping_adder", "repricing_scope", "hard_floor"):
        op.drop_column("account", column)
