"""Members sign in: sessions and invitations, both looked up by the SHA-256 of their token.

Who is invited has no password yet.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0005"
down_revision = "0004"


def moment(name: str) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def belongs(table: str) -> list[sa.ForeignKeyConstraint]:
    return [
        sa.ForeignKeyConstraint(
            [f"{of}_id"], [f"{of}.id"], name=op.f(f"fk_{table}_{of}_id"), ondelete="CASCADE"
        )
        for of in ("seller", "member")
    ]


def upgrade() -> None:
    op.alter_column("member", "password_hash", nullable=True)
    op.create_table(
        "member_session",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("member_id", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        moment("created_at"),
        moment("last_seen_at"),
        moment("expires_at"),
        *belongs("member_session"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member_session")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_member_session_token_hash")),
    )
    op.create_index(
        op.f("ix_member_session_seller_id"), "member_session", ["seller_id"], unique=False
    )
    op.create_index(
        op.f("ix_member_session_member_id"), "member_session", ["member_id"], unique=False
    )
    op.create_table(
        "invitation",
        sa.Column("member_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        moment("created_at"),
        moment("expires_at"),
        *belongs("invitation"),
        sa.PrimaryKeyConstraint("member_id", name=op.f("pk_invitation")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_invitation_token_hash")),
    )
    op.create_index(op.f("ix_invitation_seller_id"), "invitation", ["seller_id"], unique=False)
    for table in ("invitation", "member_session"):
        for statement in shared_table(table):
            op.execute(statement)
