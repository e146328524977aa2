"""The members who run the installation."""

import sqlalchemy as sa
from alembic import op

from cardsync.database.migrate import shared_table

revision = "0040"
down_revision = "0038"


def upgrade() -> None:
    op.create_table(
        "installation_operator",
        sa.Column("member_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["member_id"],
            ["member.id"],
            name=op.f("fk_installation_operator_member_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("member_id", name=op.f("pk_installation_operator")),
    )
    for statement in shared_table("installation_operator"):
        op.get_bind().connection.driver_connection.execute(statement)


def downgrade() -> None:
    op.drop_table("installation_operator")
