"""A promotion may hold a limit by cost and the prices that rules never lower."""

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = "0099"


def upgrade() -> None:
    op.add_column("pricing_sale", sa.Column("floor_cost_bp", sa.Integer()))
    op.add_column("pricing_sale", sa.Column("keep_never_lower", sa.Boolean()))


def downgrade() -> None:
    op.drop_column("pricing_sale", "keep_never_lower")
    op.drop_column("pricing_sale", "floor_cost_bp")
