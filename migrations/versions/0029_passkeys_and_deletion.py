"""Passkeys of members with the challenges that wait for an answer, and accounts that are about to be
deleted. Requests and sweeps look all three up across sellers.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0029"
down_revision = "0028"


def moment(name: str, *, given: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=not given)


def of(table: str, column: str, refers_to: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [refers_to], name=name, ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "account_deletion",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        moment("asked_at", given=True),
        moment("due_at", given=True),
        moment("begun_at"),
        of("account_deletion", "seller_id", "seller.id"),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_account_deletion")),
    )
    op.create_table(
        "passkey",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("seller_id", sa.BigInteger(), nullable=False),
        sa.Column("member_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        moment("created_at", given=True),
        moment("last_used_at"),
        of("passkey", "seller_id", "seller.id"),
        of("passkey", "member_id", "member.id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkey")),
        sa.UniqueConstraint("credential_id", name=op.f("uq_passkey_credential_id")),
    )
    op.create_index(op.f("ix_passkey_seller_id"), "passkey", ["seller_id"], unique=False)
    op.create_index(op.f("ix_passkey_member_id"), "passkey", ["member_id"], unique=False)
    op.create_table(
        "passkey_challenge",
        sa.Column("challenge", sa.LargeBinary(), nullable=False),
        sa.Column("member_id", sa.BigInteger(), nullable=True),
        moment("expires_at", given=True),
        of("passkey_challenge", "member_id", "member.id"),
        sa.PrimaryKeyConstraint("challenge", name=op.f("pk_passkey_challenge")),
    )
    for table in ("account_deletion", "passkey", "passkey_challenge"):
        for statement in shared_table(table):
            op.execute(statement)
