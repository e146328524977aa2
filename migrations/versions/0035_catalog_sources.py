"""Products name the catalog that they come from, and since when it does not name them any more."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.add_column("product", sa.Column("source", sa.Text(), nullable=True))
    op.add_column("product", sa.Column("vanished_at", sa.DateTime(timezone=True), nullable=True))
    for name in ("changed", "vanished", "skipped"):
        op.add_column(
            "catalog_import",
            sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False),
        )


def downgrade() -> None:
    for name in ("changed", "vanished", "skipped"):
        op.drop_column("catalog_import", name)
    op.drop_column("product", "vanished_at")
    op.drop_column("product", "source")
