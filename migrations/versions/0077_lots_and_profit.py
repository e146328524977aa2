"""What cards cost: lots, what orders took from them, and the kept cost of each card."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0077"
down_revision = "0076"

TABLES = ("lot_file", "lot", "lot_use", "card_cost", "lot_stale", "order_payment", "profit_sum")
SUMS = ("received", "fees", "postage", "cost", "profit")
AMOUNTS = ("letter_postage", "parcel_postage", "supplies")
# The profit of the days whose sales are kept is counted anew: `profit_sum` begins empty.
STALE = (
    "INSERT INTO sales_stale (seller_id, ordered) SELECT seller_id, ordered FROM sales_kept",
    """INSERT INTO work_due (seller_id, stream, due_at)
       SELECT DISTINCT seller_id, 'sales_sums', now() FROM sales_stale
       ON CONFLICT (seller_id, stream) DO UPDATE
          SET due_at = least(work_due.due_at, excluded.due_at)""",
)


def upgrade() -> None:
    _lots()
    _kept()
    _profit()
    op.add_column("account", sa.Column("costing", sa.Text(), server_default="fifo", nullable=False))
    for name in AMOUNTS:
        amount = sa.Column(name, sa.Numeric(12, 4), server_default="0", nullable=False)
        op.add_column("account", amount)
    for table in TABLES:
        for statement in tenant_table(table):
            op.get_bind().exec_driver_sql(statement)
    for statement in STALE:
        op.execute(statement)


def _number(name: str, *, null: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=null, autoincrement=False)


def _id() -> sa.Column:
    return sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False)


def _count(name: str, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Integer(), server_default=default, nullable=False)


def _money(name: str, digits: int, decimals: int) -> sa.Column:
    return sa.Column(name, sa.Numeric(digits, decimals), nullable=True)


def _now() -> sa.Column:
    moment = sa.DateTime(timezone=True)
    return sa.Column("created_at", moment, server_default=sa.text("now()"), nullable=False)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("seller_id", *columns, name=op.f(f"pk_{table}"))


def _check(table: str, name: str, rule: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(rule, name=op.f(f"ck_{table}_{name}"))


def _lots() -> None:
    op.create_table(
        "lot_file",
        _number("seller_id"),
        _id(),
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        _count("lots"),
        _now(),
        _key("lot_file", "id"),
    )
    op.create_index("uq_lot_file_sha256", "lot_file", ["seller_id", "sha256"], unique=True)
    op.create_table(
        "lot",
        _number("seller_id"),
        _id(),
        _number("marketplace_id"),
        _count("quantity"),
        _count("remaining"),
        _money("cost", 12, 2),
        sa.Column("bought_on", sa.Date(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        _number("source_id", null=True),
        _number("rule_id", null=True),
        _now(),
        _check("lot", "quantity", "quantity >= 1"),
        _check("lot", "remaining", "remaining BETWEEN 0 AND quantity"),
        _check("lot", "cost", "cost >= 0"),
        _check("lot", "source", "source IN ('offer', 'file', 'hand')"),
        _key("lot", "id"),
    )
    op.create_index("ix_lot_card", "lot", ["seller_id", "marketplace_id", "bought_on", "id"])
    op.create_index(
        "ix_lot_rule",
        "lot",
        ["seller_id", "rule_id"],
        postgresql_where=sa.text("rule_id IS NOT NULL"),
    )
    op.create_table(
        "lot_use",
        _number("seller_id"),
        _number("item_id"),
        _number("lot_id"),
        _count("taken"),
        _count("given_back", "0"),
        _money("cost", 14, 4),
        _check("lot_use", "taken", "taken >= 1"),
        _check("lot_use", "given_back", "given_back BETWEEN 0 AND taken"),
        _key("lot_use", "item_id", "lot_id"),
    )
    op.create_index("ix_lot_use_lot", "lot_use", ["seller_id", "lot_id"])


def _kept() -> None:
    op.create_table(
        "card_cost",
        _number("seller_id"),
        _number("marketplace_id"),
        _number("copies"),
        _number("known"),
        _money("cost", 14, 4),
        sa.Column("oldest", sa.Date(), nullable=False),
        _key("card_cost", "marketplace_id"),
    )
    op.create_table(
        "lot_stale",
        _number("seller_id"),
        _id(),
        _number("marketplace_id"),
        _key("lot_stale", "id"),
    )


def _profit() -> None:
    op.create_table(
        "order_payment",
        _number("seller_id"),
        sa.Column("order_number", sa.Text(), nullable=False),
        sa.Column("paid_on", sa.Date(), nullable=True),
        sa.Column("amount", sa.Numeric(12, 4), nullable=True),
        sa.Column("fees", sa.Numeric(12, 4), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        _key("order_payment", "order_number"),
    )
    op.create_table(
        "profit_sum",
        _number("seller_id"),
        sa.Column("ordered", sa.Date(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("game", sa.Text(), nullable=False),
        *(_number(name) for name in ("pieces", "costed")),
        *(sa.Column(name, sa.Numeric(), nullable=False) for name in SUMS),
        _key("profit_sum", "ordered", "day", "game"),
    )


def downgrade() -> None:
    for name in ("costing", *AMOUNTS):
        op.drop_column("account", name)
    op.execute("DELETE FROM work_due WHERE stream = 'lots'")
    for table in reversed(TABLES):
        op.drop_table(table)
