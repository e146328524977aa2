"""Published workflow packs and their kills; what an agent waits for its person for."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0069"
down_revision = "0068"

TURN = ("your_turn", "your_turn_host")


def upgrade() -> None:
    op.create_table(
        "workflow_pack",
        *version_of("workflow_pack"),
        sa.Column("pack", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        moment("published_at"),
    )
    op.create_table("workflow_pack_kill", *version_of("workflow_pack_kill"), moment("killed_at"))
    for table in ("workflow_pack", "workflow_pack_kill"):
        for statement in shared_table(table):
            op.get_bind().exec_driver_sql(statement)
    for name in TURN:
        op.add_column("agent_seen", sa.Column(name, sa.Text(), nullable=True))
    op.add_column(
        "agent_seen", sa.Column("your_turn_since", sa.DateTime(timezone=True), nullable=True)
    )


def version_of(table: str) -> tuple[sa.schema.SchemaItem, ...]:
    return (
        sa.Column("marketplace", sa.Text(), nullable=False),
        sa.Column("locale", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("marketplace", "locale", "version", name=op.f(f"pk_{table}")),
    )


def moment(name: str) -> sa.Column:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


def downgrade() -> None:
    for name in (*TURN, "your_turn_since"):
        op.drop_column("agent_seen", name)
    op.drop_table("workflow_pack_kill")
    op.drop_table("workflow_pack")
