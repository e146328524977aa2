"""Who decides about catalogs chooses whether they are updated every night, and whether an old one is
told.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0109"
down_revision = "0108"


def upgrade() -> None:
    op.create_table(
        "catalog_updates",
        sa.Column("id", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column("night_zone", sa.Text(), nullable=True),
        sa.Column("tells", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_catalog_updates_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_updates")),
    )
    for statement in shared_table("catalog_updates"):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    op.drop_table("catalog_updates")
