"""Prices that wait for the seller's word, the random hold-outs of rules, and the seller's limits."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0049"
down_revision = "0048"


def number(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def money(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.Numeric(12, 4), nullable=nullable)


def moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def upgrade() -> None:
    for name in ("review_up_bp", "review_down_bp"):
        op.add_column("account", sa.Column(name, sa.Integer()))
    first = sa.Column("review_first_price", sa.Boolean(), server_default="false", nullable=False)
    op.add_column("account", first)
    op.create_table(
        "price_review",
        number("seller_id"),
        number("marketplace_id"),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        number("rule_id", nullable=True),
        money("current_price", nullable=True),
        money("proposed_price"),
        money("regular_price"),
        money("result"),
        number("worth"),
        moment("revision"),
        moment("created_at"),
        moment("expires_at"),
        moment("decided_at", nullable=True),
        sa.Column("decided_by", sa.Text()),
        money("accepted_price", nullable=True),
        moment("accepted_at", nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "marketplace_id", name=op.f("pk_price_review")),
    )
    op.create_index(
        "ix_price_review_pending",
        "price_review",
        ["seller_id", sa.text("worth DESC"), "marketplace_id"],
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_table(
        "price_holdout",
        number("seller_id"),
        number("marketplace_id"),
        sa.Column("part", sa.Integer(), autoincrement=False, nullable=False),
        number("rule_id"),
        sa.Column("held", sa.Boolean(), nullable=False),
        money("price"),
        money("asked"),
        moment("since"),
        sa.PrimaryKeyConstraint(
            "seller_id", "marketplace_id", "part", "rule_id", name=op.f("pk_price_holdout")
        ),
    )
    for table in ("price_review", "price_holdout"):
        for statement in tenant_table(table):
            op.get_bind().connection.driver_connection.execute(statement)


def downgrade() -> None:
    for table in ("price_holdout", "price_review"):
        op.drop_table(table)
    for name in ("review_first_price", "review_down_bp", "review_up_bp"):
        op.drop_column("account", name)
