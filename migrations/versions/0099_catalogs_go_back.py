"""A catalog keeps the version that was in use before, and goes back to it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0099"
down_revision = "0098"


def upgrade() -> None:
    back = sa.Column("back", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("catalog_install", back)
    for name in ("content", "kept"):
        op.add_column("catalog_install", sa.Column(name, sa.Text(), nullable=True))
    for name in ("earlier", "refused"):
        op.add_column("catalog_install", sa.Column(name, JSONB(), nullable=True))


def downgrade() -> None:
    for name in ("refused", "earlier", "kept", "content", "back"):
        op.drop_column("catalog_install", name)
