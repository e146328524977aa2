"""Recommendations with their events, and what the newest generation saw of the rules."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0047"
down_revision = "0045"

OPEN = sa.text("state IN ('pending', 'snoozed', 'dismissed')")
PENDING = sa.text("state = 'pending'")
APPLIED = sa.text("state IN ('accepted', 'auto_applied')")


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def number(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def money(name: str) -> sa.Column:
    return sa.Column(name, sa.Numeric(12, 4), nullable=True)


def said(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.Text(), nullable=nullable)


def moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def json(name: str) -> sa.Column:
    return sa.Column(name, postgresql.JSONB(), server_default="{}", nullable=False)


def upgrade() -> None:
    op.create_table(
        "recommendation",
        seller(),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        said("slot"),
        said("family"),
        said("kind"),
        said("state"),
        number("card_id", nullable=True),
        number("rule_id", nullable=True),
        money("current_price"),
        money("proposed_price"),
        money("expected_value"),
        number("worth"),
        said("confidence"),
        json("evidence"),
        said("evidence_key"),
        moment("revision"),
        moment("created_at"),
        moment("expires_at"),
        moment("settled_at", nullable=True),
        said("settled_by", nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_recommendation")),
    )
    op.create_index(
        "uq_recommendation_slot",
        "recommendation",
        ["seller_id", "slot"],
        unique=True,
        postgresql_where=OPEN,
    )
    op.create_index(
        "ix_recommendation_pending",
        "recommendation",
        ["seller_id", "family", sa.text("worth DESC"), "id"],
        postgresql_include=["expires_at", "revision", "expected_value"],
        postgresql_where=PENDING,
    )
    op.create_index(
        "ix_recommendation_expired",
        "recommendation",
        ["seller_id", "settled_at"],
        postgresql_where=sa.text("state = 'expired'"),
    )
    op.create_index(
        "ix_recommendation_applied",
        "recommendation",
        ["seller_id", "settled_at"],
        postgresql_where=APPLIED,
    )
    op.create_table(
        "recommendation_event",
        seller(),
        number("recommendation_id"),
        moment("revision"),
        said("kind"),
        moment("at"),
        said("actor"),
        sa.PrimaryKeyConstraint(
            "seller_id",
            "recommendation_id",
            "revision",
            "kind",
            name=op.f("pk_recommendation_event"),
        ),
    )
    op.create_table(
        "recommendation_scan",
        seller(),
        moment("generated_at"),
        json("rule_cards"),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_recommendation_scan")),
    )
    for table in ("recommendation", "recommendation_event", "recommendation_scan"):
        for statement in tenant_table(table):
            op.get_bind().connection.driver_connection.execute(statement)
    op.add_column(
        "account",
        sa.Column("recommendations", sa.Text(), server_default="review", nullable=False),
    )


def downgrade() -> None:
    op.drop_column("account", "recommendations")
    for table in ("recommendation_scan", "recommendation_event", "recommendation"):
        op.drop_table(table)
