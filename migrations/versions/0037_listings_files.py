"""The files of new listings that an agent was given and has not answered."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    op.create_table(
        "quick_add_file",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("entry_ids", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("served_to", sa.Text(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_quick_add_file")),
    )
    for statement in tenant_table("quick_add_file"):
        op.get_bind().connection.driver_connection.execute(statement)
