"""Pull queues: the links of phones, their marks and claims, and the orders with a missing card."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0031"
down_revision = "0029"


def key(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def number(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def counted(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), sa.Identity(always=True), nullable=False)


def texts(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def of_session(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["seller_id", "session_id"],
        ["pull_session.seller_id", "pull_session.id"],
        name=op.f(f"fk_{table}_seller_id_pull_session"),
    )


def upgrade() -> None:
    op.create_table(
        "pull_link",
        key("seller_id"),
        counted("id"),
        number("session_id"),
        *texts("product_line"),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        *texts("made_by"),
        moment("created_at"),
        moment("revoked_at", nullable=True),
        of_session("pull_link"),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_pull_link")),
    )
    op.create_index("ix_pull_link_session", "pull_link", ["seller_id", "session_id"])
    op.create_table(
        "pull_mark",
        key("seller_id"),
        key("session_id"),
        *texts("id"),
        counted("received"),
        number("link_id"),
        number("item_id"),
        number("order_id", nullable=True),
        number("sku_id", nullable=True),
        *texts("kind"),
        sa.Column("quantity", sa.Integer(), nullable=False),
        *texts("undoes", "device"),
        number("sequence"),
        *texts("person"),
        sa.Column("undone", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        moment("received_at"),
        sa.CheckConstraint(
            "kind IN ('pulled', 'defer', 'missing', 'undo')", name=op.f("ck_pull_mark_kind")
        ),
        sa.CheckConstraint("quantity >= 1", name=op.f("ck_pull_mark_quantity")),
        of_session("pull_mark"),
        sa.PrimaryKeyConstraint("seller_id", "session_id", "id", name=op.f("pk_pull_mark")),
    )
    op.create_index(
        "uq_pull_mark_received", "pull_mark", ["seller_id", "session_id", "received"], unique=True
    )
    op.create_index(
        "ix_pull_mark_missing",
        "pull_mark",
        ["seller_id", "sku_id"],
        postgresql_where=sa.text("kind = 'missing' AND NOT undone"),
    )
    op.create_table(
        "pull_claim",
        key("seller_id"),
        key("session_id"),
        key("item_id"),
        *texts("device"),
        moment("until"),
        of_session("pull_claim"),
        sa.PrimaryKeyConstraint("seller_id", "session_id", "item_id", name=op.f("pk_pull_claim")),
    )
    op.add_column("pull_session_order", moment("missing_at", nullable=True))
    for table in ("pull_link", "pull_mark", "pull_claim"):
        for statement in tenant_table(table):
            op.get_bind().connection.driver_connection.execute(statement)
