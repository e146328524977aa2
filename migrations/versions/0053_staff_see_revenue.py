"""Staff see what the shop earned only if the account says so."""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0051"


def upgrade() -> None:
    op.add_column(
        "account",
        sa.Column(
            "staff_see_revenue", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
    )


def downgrade() -> None:
    op.drop_column("account", "staff_see_revenue")
