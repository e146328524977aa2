"""Decisions about the price of a card are kept in one table: pins, accepted and confirmed
prices, caps, targets of sales and hold-outs.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0063"
down_revision = "0062"

OLD = ("pinned_price", "confirmed_price", "held_price", "sale_target", "price_holdout")
# The rows of each table in the new one. A price that was accepted or confirmed holds for thirty
# days, as it did.
CARRIED = (
    """INSERT INTO price_decision (seller_id, kind, marketplace_id, price, since, until)
       SELECT seller_id, 'pin', marketplace_id, price, created_at, until FROM pinned_price""",
    """INSERT INTO price_decision (seller_id, kind, marketplace_id, price, since, until, decided_by)
       SELECT seller_id, 'accepted', marketplace_id, accepted_price, accepted_at,
              accepted_at + interval '30 days',
              CASE WHEN state = 'accepted' AND decided_at = accepted_at THEN decided_by END
         FROM price_review WHERE accepted_price IS NOT NULL""",
    """INSERT INTO price_decision (seller_id, kind, marketplace_id, price, since, until)
       SELECT seller_id, 'confirmed', marketplace_id, price, confirmed_at,
              confirmed_at + interval '30 days' FROM confirmed_price""",
    """INSERT INTO price_decision (seller_id, kind, marketplace_id)
       SELECT seller_id, 'cap', marketplace_id FROM held_price""",
    """INSERT INTO price_decision (seller_id, kind, marketplace_id, source_id)
       SELECT seller_id, 'sale', marketplace_id, sale_id FROM sale_target""",
    """INSERT INTO price_decision (seller_id, kind, marketplace_id, source_id, part, price, asked,
                                   since)
       SELECT seller_id, CASE WHEN held THEN 'held_out' ELSE 'twin' END, marketplace_id, rule_id,
              part, price, asked, since FROM price_holdout""",
)


def number(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def zero(name: str, kind: type[sa.Integer]) -> sa.Column:
    return sa.Column(name, kind(), server_default="0", autoincrement=False, nullable=False)


def upgrade() -> None:
    op.create_table(
        "price_decision",
        number("seller_id"),
        sa.Column("kind", sa.Text(), nullable=False),
        number("marketplace_id"),
        zero("source_id", sa.BigInteger),
        zero("part", sa.Integer),
        sa.Column("price", sa.Numeric(12, 4)),
        sa.Column("asked", sa.Numeric(12, 4)),
        sa.Column(
            "since",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("until", sa.DateTime(timezone=True)),
        sa.Column("decided_by", sa.Text()),
        sa.PrimaryKeyConstraint(
            "seller_id", "kind", "marketplace_id", "source_id", "part",
            name=op.f("pk_price_decision"),
        ),
    )  # fmt: skip
    # Writers wait from here to the end, and none can write a row that is not carried over. The
    # owner of the tables need not be a superuser: for these statements they are open to it.
    op.execute(f"LOCK TABLE price_review, {', '.join(OLD)} IN ACCESS EXCLUSIVE MODE")
    for table in ("price_review", *OLD):
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    for statement in CARRIED:
        op.execute(statement)
    op.execute("ALTER TABLE price_review FORCE ROW LEVEL SECURITY")
    for table in OLD:
        op.drop_table(table)
    op.drop_column("price_review", "accepted_price")
    op.drop_column("price_review", "accepted_at")
    for statement in tenant_table("price_decision"):
        op.get_bind().connection.driver_connection.execute(statement)
