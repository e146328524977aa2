"""A row that names a member names one of its own seller: the database holds new rows to it, and the
next migration checks the old ones.

A grant whose giver left names nobody.
"""

from alembic import op

from cardsync.platform.database.migrate import index_concurrently

revision = "0085"
down_revision = "0084"

INDEX = "uq_member_seller_id_id"
ENDS = "CASCADE"
TABLES = {
    "access_token": ENDS,
    "invitation": ENDS,
    "member_session": ENDS,
    "oauth_code": ENDS,
    "oauth_grant": "SET NULL (member_id)",
    "passkey": ENDS,
}


def upgrade() -> None:
    index_concurrently(INDEX, "member", ["seller_id", "id"], unique=True)
    op.alter_column("oauth_grant", "member_id", nullable=True)
    for table, ondelete in TABLES.items():
        op.create_foreign_key(
            op.f(f"fk_{table}_seller_id_member_id"),
            table,
            "member",
            ["seller_id", "member_id"],
            ["seller_id", "id"],
            ondelete=ondelete,
            postgresql_not_valid=True,
        )


def downgrade() -> None:
    for table in TABLES:
        op.drop_constraint(op.f(f"fk_{table}_seller_id_member_id"), table)
    op.drop_index(INDEX, "member")
    op.execute("DELETE FROM oauth_grant WHERE member_id IS NULL")
    op.alter_column("oauth_grant", "member_id", nullable=False)
