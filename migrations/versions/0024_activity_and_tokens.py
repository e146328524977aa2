"""The activity feed tells risk, outcome, before and after, and remembers what an undo needs; tokens
for assistants and scripts, looked up by the SHA-256 of what is shown once.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import shared_table

revision = "0024"
down_revision = "0023"


def moment(name: str, *, given: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=not given)


def upgrade() -> None:
    for name, default in (("risk", "low"), ("outcome", "applied")):
        op.add_column(
            "activity", sa.Column(name, sa.Text(), server_default=default, nullable=False)
        )
    for name in ("before", "after", "undo"):
        op.add_column("activity", sa.Column(name, postgresql.JSONB(), nullable=True))
    op.add_column("activity", sa.Column("undone_by", sa.BigInteger(), nullable=True))
    op.create_table(
        "access_token",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        moment("expires_at"),
        moment("revoked_at"),
        sa.ForeignKeyConstraint(
            ["seller_id"],
            ["seller.id"],
            name=op.f("fk_access_token_seller_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_token")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_access_token_token_hash")),
    )
    op.create_index(op.f("ix_access_token_seller_id"), "access_token", ["seller_id"], unique=False)
    for statement in shared_table("access_token"):
        op.execute(statement)
