"""Price reviews and recommendations are proposals of one table."""

import sqlalchemy as sa
from alembic import op

revision = "0064"
down_revision = "0063"

RENAMED = (
    ("pk_recommendation", "pk_proposal"),
    ("uq_recommendation_slot", "uq_proposal_slot"),
    ("ix_recommendation_pending", "ix_proposal_pending"),
    ("ix_recommendation_expired", "ix_proposal_expired"),
    ("ix_recommendation_applied", "ix_proposal_applied"),
)
CARRIED = """
    INSERT INTO proposal (seller_id, slot, family, kind, state, marketplace_id, rule_id,
                          current_price, proposed_price, worth, evidence, revision, created_at,
                          expires_at, settled_at, settled_by)
    SELECT seller_id, 'review:' || marketplace_id, 'review', reason, state, marketplace_id, rule_id,
           current_price, proposed_price, worth,
           jsonb_build_object('regular_price', (regular_price * 10000)::bigint,
                              'result', (result * 10000)::bigint),
           revision, created_at, expires_at, decided_at, decided_by
      FROM price_review
"""


def upgrade() -> None:
    # Writers wait from here to the end. A table keeps its rows, policy and grants with a new name.
    op.execute("LOCK TABLE recommendation, price_review IN ACCESS EXCLUSIVE MODE")
    op.rename_table("recommendation", "proposal")
    for old, new in RENAMED:
        op.execute(f"ALTER INDEX {old} RENAME TO {new}")
    op.execute("ALTER SEQUENCE recommendation_id_seq RENAME TO proposal_id_seq")
    op.add_column("proposal", sa.Column("marketplace_id", sa.BigInteger()))
    for name in ("confidence", "evidence_key"):
        op.alter_column("proposal", name, nullable=True)
    # The owner of the tables need not be a superuser: for this statement they are open to it.
    for table in ("proposal", "price_review"):
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    op.execute(CARRIED)
    op.execute("ALTER TABLE proposal FORCE ROW LEVEL SECURITY")
    op.drop_table("price_review")
    op.create_index(
        "uq_proposal_review",
        "proposal",
        ["seller_id", "marketplace_id"],
        unique=True,
        postgresql_where=sa.text("family = 'review'"),
    )
