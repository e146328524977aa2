"""The sums of customers: the customer of each order, the sums of each customer, their numbers."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0044"
down_revision = "0043"

TABLES = ("customer_order", "customer_sum", "customer_count")
# All days are out of date until the worker keeps them, after the next upload of orders.
STALE = """
    INSERT INTO sales_stale (seller_id, ordered)
    SELECT DISTINCT seller_id, coalesce(order_date, DATE '0001-01-01') FROM orders
"""


def big(name: str, **how: object) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=False, **how)


def moment(name: str) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True))


def upgrade() -> None:
    op.create_table(
        "customer_order",
        big("seller_id", autoincrement=False),
        big("order_id", autoincrement=False),
        big("name"),
        sa.PrimaryKeyConstraint("seller_id", "order_id", name=op.f("pk_customer_order")),
    )
    op.create_index("ix_customer_order_name", "customer_order", ["seller_id", "name", "order_id"])
    op.create_table(
        "customer_sum",
        big("seller_id", autoincrement=False),
        big("name", autoincrement=False),
        big("order_count"),
        sa.Column("lifetime_total", sa.Numeric(), nullable=False),
        big("newest"),
        moment("first_given"),
        moment("last_given"),
        sa.Column("first_day", sa.Date()),
        sa.Column("last_day", sa.Date()),
        big("refunded_orders"),
        sa.Column("refunded_total", sa.Numeric(), nullable=False),
        sa.Column("newest_refunded", sa.BigInteger()),
        sa.PrimaryKeyConstraint("seller_id", "name", name=op.f("pk_customer_sum")),
    )
    op.create_index(
        "ix_customer_sum_lifetime",
        "customer_sum",
        [
            "seller_id",
            sa.text("lifetime_total DESC"),
            sa.text("order_count DESC"),
            sa.text("newest DESC"),
        ],
        postgresql_include=["name"],
    )
    op.create_index(
        "ix_customer_sum_refunded",
        "customer_sum",
        [
            "seller_id",
            sa.text("refunded_orders DESC"),
            sa.text("refunded_total DESC"),
            "name",
        ],
        postgresql_where=sa.text("refunded_orders >= 2"),
    )
    op.create_table(
        "customer_count",
        big("seller_id", autoincrement=False),
        big("customers"),
        big("repeat_customers"),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_customer_count")),
    )
    connection = op.get_bind().connection.driver_connection
    connection.execute(STALE)
    for statement in [one for table in TABLES for one in tenant_table(table)]:
        connection.execute(statement)


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
