"""Credentials that name a member of another seller, or one who left, are deleted; then all rows are
checked. The keys to a member alone, without its seller, are dropped.
"""

from alembic import op

revision = "0086"
down_revision = "0085"

# A grant stays, as a name of the activity.
STRAYS = """
    DELETE FROM {table} t WHERE member_id IS NOT NULL AND NOT EXISTS
    (SELECT FROM member m WHERE m.seller_id = t.seller_id AND m.id = t.member_id)
"""
LEFT = """
    UPDATE oauth_grant g SET member_id = NULL WHERE NOT EXISTS
    (SELECT FROM member m WHERE m.seller_id = g.seller_id AND m.id = g.member_id)
"""
WITH_A_KEY = ("access_token", "invitation", "member_session", "passkey")


def upgrade() -> None:
    # The owner of the tables is kept within one seller, too, and this is of all.
    op.execute("ALTER TABLE oauth_grant NO FORCE ROW LEVEL SECURITY")
    op.execute(LEFT)
    op.execute("ALTER TABLE oauth_grant FORCE ROW LEVEL SECURITY")
    for table in (*WITH_A_KEY, "oauth_code"):
        op.execute(STRAYS.format(table=table))
    for table in (*WITH_A_KEY, "oauth_code", "oauth_grant"):
        op.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT fk_{table}_seller_id_member_id")
    for table in WITH_A_KEY:
        op.drop_constraint(op.f(f"fk_{table}_member_id"), table)


def downgrade() -> None:
    for table in WITH_A_KEY:
        op.create_foreign_key(
            op.f(f"fk_{table}_member_id"),
            table,
            "member",
            ["member_id"],
            ["id"],
            ondelete="CASCADE",
        )
