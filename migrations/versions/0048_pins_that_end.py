"""A pin may end: an accepted recommendation pins its price until its evidence expires."""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    op.add_column("pinned_price", sa.Column("until", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("pinned_price", "until")
