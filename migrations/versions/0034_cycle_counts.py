"""Cycle counts: what was expected to lie in a box, what was seen there, and how it was settled."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0034"
down_revision = "0033"


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def number(name: str, *, nullable: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Integer(), server_default=default, nullable=nullable)


def key(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def upgrade() -> None:
    op.create_table(
        "shelf_count",
        seller(),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        number("box"),
        number("slot", nullable=True),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("begun_by", sa.Text(), nullable=False),
        moment("begun_at"),
        moment("ended_at", nullable=True),
        *(number(name, default="0") for name in ("lines", "correct", "wrong", "moved", "unseen")),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_shelf_count")),
    )
    op.create_index(
        "uq_shelf_count_open",
        "shelf_count",
        ["seller_id", "box"],
        unique=True,
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index("ix_shelf_count_box", "shelf_count", ["seller_id", "box", "ended_at"])
    op.create_table(
        "shelf_count_line",
        seller(),
        key("count_id"),
        key("card_id"),
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        number("expected"),
        number("seen", nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["seller_id", "count_id"],
            ["shelf_count.seller_id", "shelf_count.id"],
            name=op.f("fk_shelf_count_line_seller_id_count_id"),
        ),
        sa.PrimaryKeyConstraint(
            "seller_id",
            "count_id",
            "card_id",
            "slot",
            name=op.f("pk_shelf_count_line"),
        ),
    )
    for statement in [*tenant_table("shelf_count"), *tenant_table("shelf_count_line")]:
        op.get_bind().connection.driver_connection.execute(statement)
