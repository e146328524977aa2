"""The members who run the installation, and the sums of sales that are kept by day and game."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table, tenant_table

revision = "0040"
down_revision = "0038"

SALES = ("sales_stale", "sales_kept", "sales_sum", "sales_game", "sales_pace")
# All days are out of date until the worker keeps them, after the next upload of orders.
STALE = """
    INSERT INTO sales_stale (seller_id, ordered)
    SELECT DISTINCT seller_id, order_date FROM orders WHERE order_date IS NOT NULL
"""


def big(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def amount(name: str) -> sa.Column:
    return sa.Column(name, sa.Numeric(), nullable=False)


def of_day(table: str, *columns: sa.Column, key: str = "") -> None:
    """Make a table of sums, whose key begins with the seller and the orders' date."""
    op.create_table(
        table,
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ordered", sa.Date(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("seller_id", "ordered", *key.split(), name=op.f(f"pk_{table}")),
    )


def day() -> sa.Column:
    return sa.Column("day", sa.Date(), nullable=False)


def game() -> sa.Column:
    return sa.Column("game", sa.Text(), nullable=False)


def sums_of_sales() -> None:
    op.create_table(
        "sales_stale",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("ordered", sa.Date(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_sales_stale")),
    )
    op.create_index("ix_sales_stale_ordered", "sales_stale", ["seller_id", "ordered"])
    of_day(
        "sales_kept",
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False),
    )
    money = (amount("gross"), big("refunded"), amount("refunds"))
    of_day("sales_sum", day(), big("orders"), *money, key="day")
    counted = (big("orders"), big("pieces"), amount("gross"))
    of_day("sales_game", day(), game(), *counted, key="day game")
    pace = sa.Column("days", sa.Integer(), autoincrement=False, nullable=False)
    of_day("sales_pace", day(), game(), pace, big("items"), key="day game days")


def upgrade() -> None:
    op.create_table(
        "installation_operator",
        sa.Column("member_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["member_id"],
            ["member.id"],
            name=op.f("fk_installation_operator_member_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("member_id", name=op.f("pk_installation_operator")),
    )
    sums_of_sales()
    connection = op.get_bind().connection.driver_connection
    connection.execute(STALE)
    secured = [one for table in SALES for one in tenant_table(table)]
    for statement in [*shared_table("installation_operator"), *secured]:
        connection.execute(statement)


def downgrade() -> None:
    for table in (*SALES, "installation_operator"):
        op.drop_table(table)
