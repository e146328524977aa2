"""Rule tests: searches, and what the seller expects of the prices of their cards."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0032"
down_revision = "0031"


def moment(name: str) -> sa.Column:
    return sa.Column(
        name,
        sa.DateTime(timezone=True),
        server_default=sa.text("now()"),
        nullable=False,
    )


def upgrade() -> None:
    op.create_table(
        "rule_test",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("search", sa.Text(), server_default="", nullable=False),
        sa.Column("expectation", sa.Text(), nullable=False),
        moment("created_at"),
        moment("updated_at"),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_rule_test")),
    )
    for statement in tenant_table("rule_test"):
        op.get_bind().connection.driver_connection.execute(statement)
