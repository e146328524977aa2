"""When each member saw Today last, and the visit before."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0071"
down_revision = "0070"


def upgrade() -> None:
    op.create_table(
        "member_visit",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("member_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("before_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "member_id", name=op.f("pk_member_visit")),
    )
    for statement in tenant_table("member_visit"):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    op.drop_table("member_visit")
