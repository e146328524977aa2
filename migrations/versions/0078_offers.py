"""Offers for cards that the shop buys, store credit of customers, and the public buylist."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0078"
down_revision = "0077"

TABLES = (
    "buying_customer",
    "store_credit_entry",
    "buying_offer",
    "buying_offer_line",
    "public_buylist",
)
_OPEN = "state IN ('draft', 'offered', 'accepted', 'received', 'paid')"
_STATES = (
    "state IN ('draft', 'offered', 'accepted', 'received', 'paid', 'in_stock',"
    " 'declined', 'expired')"
)


def upgrade() -> None:
    _credit()
    _offers()
    _lines()
    op.create_table(
        "public_buylist",
        _number("seller_id"),
        _flag("is_open"),
        _text("terms", default=""),
        _moment("updated_at", default=True),
        _key("public_buylist"),
    )
    statements = [statement for table in TABLES for statement in tenant_table(table)]
    for statement in [*statements, "REVOKE UPDATE ON store_credit_entry FROM cardsync_app"]:
        op.get_bind().exec_driver_sql(statement)


def _text(name: str, *, null: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Text(), nullable=null, server_default=default)


def _number(name: str, *, null: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=null, autoincrement=False)


def _count(name: str, *, null: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Integer(), nullable=null, server_default=default)


def _money(name: str, *, null: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Numeric(12, 4), nullable=null, server_default=default)


def _flag(name: str) -> sa.Column:
    return sa.Column(name, sa.Boolean(), server_default=sa.text("false"), nullable=False)


def _json(name: str, default: str) -> sa.Column:
    return sa.Column(name, postgresql.JSONB(), server_default=default, nullable=False)


def _moment(name: str, *, null: bool = False, default: bool = False) -> sa.Column:
    now = sa.text("now()") if default else None
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null, server_default=now)


def _of_seller() -> tuple[sa.Column, sa.Column]:
    return (
        _number("seller_id"),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
    )


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("seller_id", *columns, name=op.f(f"pk_{table}"))


def _check(table: str, name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=op.f(f"ck_{table}_{name}"))


def _of_customer(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["seller_id", "customer_id"],
        ["buying_customer.seller_id", "buying_customer.id"],
        name=op.f(f"fk_{table}_seller_id_buying_customer"),
    )


def _credit() -> None:
    op.create_table(
        "buying_customer",
        *_of_seller(),
        _text("name"),
        _text("contact", default=""),
        _money("credit_balance", default="0"),
        _text("created_by"),
        _moment("created_at", default=True),
        _moment("updated_at", default=True),
        _check("buying_customer", "credit_balance", "credit_balance >= 0"),
        _key("buying_customer", "id"),
    )
    table = "store_credit_entry"
    op.create_table(
        table,
        *_of_seller(),
        _number("customer_id"),
        _text("kind"),
        _money("amount"),
        _money("balance_after"),
        _number("offer_id", null=True),
        _number("takes_back", null=True),
        _text("reason", default=""),
        _text("idempotency_key", null=True),
        _text("created_by"),
        _moment("created_at", default=True),
        _check(table, "balance_after", "balance_after >= 0"),
        _check(table, "amount", "amount <> 0"),
        _check(table, "kind", "kind IN ('offer', 'spent', 'added', 'taken_back')"),
        _of_customer(table),
        _key(table, "id"),
    )
    op.create_index(
        "ix_store_credit_entry_customer", table, ["seller_id", "customer_id", sa.text("id DESC")]
    )
    for name, column in (("key", "idempotency_key"), ("takes_back", "takes_back")):
        op.create_index(
            f"uq_store_credit_entry_{name}",
            table,
            ["seller_id", column],
            unique=True,
            postgresql_where=sa.text(f"{column} IS NOT NULL"),
        )


def _offers() -> None:
    table = "buying_offer"
    op.create_table(
        table,
        *_of_seller(),
        _count("revision", default="1"),
        _text("state", default="draft"),
        _text("source", default="hand"),
        _number("collection_id", null=True),
        _number("customer_id", null=True),
        _text("note", default=""),
        _text("way", null=True),
        _money("cash_part", null=True),
        _money("paid_cash", null=True),
        _money("paid_credit", null=True),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=True),
        _text("created_by"),
        _text("answered_by", null=True),
        _moment("created_at", default=True),
        _moment("updated_at", default=True),
        *(
            _moment(f"{name}_at", null=True)
            for name in ("offered", "expires", "answered", "received", "paid", "stocked")
        ),
        _check(table, "state", _STATES),
        _check(table, "source", "source IN ('hand', 'collection', 'buylist')"),
        _check(table, "way", "way IN ('cash', 'credit', 'split')"),
        _of_customer(table),
        _key(table, "id"),
    )
    op.create_index(
        "ix_buying_offer_open", table, ["seller_id", "id"], postgresql_where=sa.text(_OPEN)
    )
    op.create_index("ix_buying_offer_customer", table, ["seller_id", "customer_id"])


def _lines() -> None:
    table = "buying_offer_line"
    op.create_table(
        table,
        *_of_seller(),
        _number("offer_id"),
        _number("product_id"),
        *(
            _text(name)
            for name in (
                "product_line",
                "set_name",
                "product_name",
                "number",
                "rarity",
                "condition",
                "printing",
                "language",
            )
        ),
        _count("copies"),
        _money("cash_each", null=True),
        _money("credit_each", null=True),
        _text("reason", default=""),
        _json("grades", "{}"),
        _flag("by_hand"),
        _number("rule_id", null=True),
        _json("explanation", "[]"),
        sa.Column("accepted", sa.Boolean(), nullable=True),
        _count("received_copies", null=True),
        _text("received_condition", null=True),
        _money("received_cash_each", null=True),
        _money("received_credit_each", null=True),
        _money("cost_each", null=True),
        _number("lot_id", null=True),
        _number("quick_add_id", null=True),
        _check(table, "copies", "copies >= 1"),
        sa.ForeignKeyConstraint(
            ["seller_id", "offer_id"],
            ["buying_offer.seller_id", "buying_offer.id"],
            name=op.f(f"fk_{table}_seller_id_buying_offer"),
            ondelete="CASCADE",
        ),
        _key(table, "id"),
    )
    op.create_index("ix_buying_offer_line_offer", table, ["seller_id", "offer_id"])


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
