"""Collections that customers bring, and the rules of what a shop pays for their cards."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0076"
down_revision = "0075"

TABLES = ("buy_rule", "buy_rule_test", "collection", "collection_row", "collection_columns")


def upgrade() -> None:
    _rules()
    _collections()
    for table in TABLES:
        for statement in tenant_table(table):
            op.get_bind().exec_driver_sql(statement)


def _text(name: str, *, null: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Text(), nullable=null, server_default=default)


def _count(name: str) -> sa.Column:
    return sa.Column(name, sa.Integer(), server_default="0", nullable=False)


def _number(name: str, *, null: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=null, autoincrement=False)


def _moment(name: str, *, null: bool = False, now: bool = False) -> sa.Column:
    default = sa.text("now()") if now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=null)


def _json(name: str, *, null: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, postgresql.JSONB(), server_default=default, nullable=null)


def _of_seller() -> tuple[sa.Column, sa.Column]:
    return (
        _number("seller_id"),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
    )


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("seller_id", *columns, name=op.f(f"pk_{table}"))


def _rules() -> None:
    op.create_table(
        "buy_rule",
        *_of_seller(),
        _text("name"),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        _text("state", default="draft"),
        _text("preset", null=True),
        _text("query", default=""),
        _json("settings"),
        _moment("created_at", now=True),
        _moment("updated_at", now=True),
        _key("buy_rule", "id"),
    )
    op.create_index(
        "uq_buy_rule_priority",
        "buy_rule",
        ["seller_id", "priority"],
        unique=True,
        postgresql_where=sa.text("state = 'published'"),
    )
    op.create_table(
        "buy_rule_test",
        *_of_seller(),
        _text("name"),
        _text("search", default=""),
        _text("expectation"),
        _moment("created_at", now=True),
        _moment("updated_at", now=True),
        _key("buy_rule_test", "id"),
    )


def _collections() -> None:
    op.create_table(
        "collection",
        *_of_seller(),
        *(_count(name) for name in ("attempts", "failures")),
        _text("request_id", null=True),
        _text("traceparent", null=True),
        *(_text(name) for name in ("name", "sha256", "storage_key")),
        _text("state", default="queued"),
        _text("format", default=""),
        _json("header", default="[]"),
        _json("samples", default="[]"),
        _json("columns", null=True),
        *(_count(name) for name in ("rows", "read", "empty")),
        _json("rejected", default="[]"),
        _count("rejected_count"),
        _text("error", null=True),
        _text("created_by"),
        _moment("received_at"),
        _moment("finished_at", null=True),
        _key("collection", "id"),
    )
    op.create_index("uq_collection_file", "collection", ["seller_id", "sha256"], unique=True)
    op.create_index(
        "ix_collection_open",
        "collection",
        ["seller_id", "id"],
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_table(
        "collection_row",
        *(_number(name) for name in ("seller_id", "collection_id", "row")),
        sa.Column("copies", sa.Integer(), nullable=False),
        *(_text(name) for name in ("name", "set_name", "set_code", "number")),
        *(_text(name) for name in ("finish", "condition", "language", "game")),
        *(_number(name, null=True) for name in ("sku", "product_id")),
        *(_text(name, null=True) for name in ("certainty", "how")),
        sa.Column("left_out", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        _text("chosen_by", null=True),
        _moment("chosen_at", null=True),
        sa.ForeignKeyConstraint(
            ["seller_id", "collection_id"],
            ["collection.seller_id", "collection.id"],
            name=op.f("fk_collection_row_seller_id_collection"),
            ondelete="CASCADE",
        ),
        _key("collection_row", "collection_id", "row"),
    )
    op.create_index(
        "ix_collection_row_waiting",
        "collection_row",
        ["seller_id", "collection_id", "row"],
        postgresql_where=sa.text("product_id IS NULL AND NOT left_out"),
    )
    op.create_table(
        "collection_columns",
        _number("seller_id"),
        _text("header"),
        _json("columns"),
        _moment("updated_at", now=True),
        _key("collection_columns", "header"),
    )


def downgrade() -> None:
    for table in ("collection_row", "collection", "collection_columns", "buy_rule_test"):
        op.drop_table(table)
    op.drop_table("buy_rule")
