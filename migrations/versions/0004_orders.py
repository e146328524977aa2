"""Orders with their items, refunds, shipping and feedback; their counts; pull sessions; sales reports."""

import sqlalchemy as sa
from alembic import op

from cardsync.migrate import tenant_table

revision = "0004"
down_revision = "0003"

TENANT = ("orders", "order_item", "order_tally", "pull_session", "pull_session_order", "sales_report")


def upgrade() -> None:
    create_tables()
    for table in TENANT:
        for statement in tenant_table(table):
            op.get_bind().exec_driver_sql(statement)


def create_tables() -> None:
    op.create_table(
        "order_tally",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("begins", sa.Date(), nullable=False),
        sa.Column("status_group", sa.Text(), nullable=False),
        sa.Column("shipping_type", sa.Text(), nullable=False),
        sa.Column("refunded", sa.Boolean(), nullable=False),
        sa.Column("orders", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "seller_id", "period", "begins", "status_group", "shipping_type", "refunded", name=op.f("pk_order_tally")
        ),
    )
    op.create_table(
        "orders",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("order_number", sa.Text(), nullable=False),
        sa.Column("buyer_name", sa.Text(), nullable=True),
        sa.Column("order_date", sa.Date(), nullable=True),
        sa.Column("placed_at_given", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "order_placed_at",
            sa.DateTime(timezone=True),
            sa.Computed(
                "coalesce(placed_at_given, timezone('America/New_York', order_date::timestamp))", persisted=True
            ),
            nullable=True,
        ),
        sa.Column("status", sa.Text(), nullable=True),
        sa.Column(
            "status_group",
            sa.Text(),
            sa.Computed(
                "CASE WHEN btrim(status) <> '' IS NOT TRUE THEN 'Unknown'"
                " WHEN lower(btrim(status)) IN ('canceled', 'cancelled') THEN 'Cancelled' ELSE status END",
                persisted=True,
            ),
            nullable=False,
        ),
        sa.Column("product_amt", sa.Numeric(), nullable=True),
        sa.Column("shipping_amt", sa.Numeric(), nullable=True),
        sa.Column("total_amt", sa.Numeric(), nullable=True),
        sa.Column("refund_type", sa.Text(), nullable=True),
        sa.Column("refund_origin", sa.Text(), nullable=True),
        sa.Column("refund_product_amt", sa.Numeric(), nullable=True),
        sa.Column("refund_shipping_amt", sa.Numeric(), nullable=True),
        sa.Column("refund_amt", sa.Numeric(), nullable=True),
        sa.Column("refund_reason", sa.Text(), nullable=True),
        sa.Column("refund_note", sa.Text(), nullable=True),
        sa.Column("shipping_method", sa.Text(), nullable=True),
        sa.Column("city", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("postal_code", sa.Text(), nullable=True),
        sa.Column("tracking_number", sa.Text(), nullable=True),
        sa.Column("shipping_item_count", sa.Integer(), nullable=True),
        sa.Column("product_weight", sa.Numeric(), nullable=True),
        sa.Column("shipping_type", sa.Text(), server_default="pwe", nullable=False),
        sa.Column("items_total", sa.Integer(), server_default="0", nullable=False),
        sa.Column("items_quantity", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("product_lines", sa.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("feedback_rating", sa.Integer(), nullable=True),
        sa.Column("feedback_comment", sa.Text(), nullable=True),
        sa.Column(
            "to_ship",
            sa.Boolean(),
            sa.Computed(
                "refund_amt IS NULL AND coalesce(status ~* 'paid|ready to ship|processing'"
                " AND status !~* 'unpaid|not paid|shipped|in transit|delivered|cancel|refund', false)",
                persisted=True,
            ),
            nullable=False,
        ),
        sa.Column("shipped_marked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("pull_dismissed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "abs(product_amt) < 100000000 AND scale(product_amt) <= 4", name=op.f("ck_orders_product_amt")
        ),
        sa.CheckConstraint("abs(refund_amt) < 100000000 AND scale(refund_amt) <= 4", name=op.f("ck_orders_refund_amt")),
        sa.CheckConstraint(
            "abs(refund_product_amt) < 100000000 AND scale(refund_product_amt) <= 4",
            name=op.f("ck_orders_refund_product_amt"),
        ),
        sa.CheckConstraint(
            "abs(refund_shipping_amt) < 100000000 AND scale(refund_shipping_amt) <= 4",
            name=op.f("ck_orders_refund_shipping_amt"),
        ),
        sa.CheckConstraint(
            "abs(shipping_amt) < 100000000 AND scale(shipping_amt) <= 4", name=op.f("ck_orders_shipping_amt")
        ),
        sa.CheckConstraint("abs(total_amt) < 100000000 AND scale(total_amt) <= 4", name=op.f("ck_orders_total_amt")),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_orders")),
    )
    op.create_index(
        "ix_orders_date",
        "orders",
        ["seller_id", sa.literal_column("order_date DESC NULLS LAST"), sa.literal_column("id DESC")],
        unique=False,
    )
    op.create_index(
        "ix_orders_pullable",
        "orders",
        ["seller_id", sa.literal_column("order_date DESC NULLS LAST"), sa.literal_column("id DESC")],
        unique=False,
        postgresql_where=sa.text("to_ship AND shipped_marked_at IS NULL AND pull_dismissed_at IS NULL"),
    )
    op.create_index(
        "ix_orders_refunded",
        "orders",
        ["seller_id", sa.literal_column("order_date DESC NULLS LAST"), sa.literal_column("id DESC")],
        unique=False,
        postgresql_where=sa.text("refund_amt IS NOT NULL"),
    )
    op.create_index(
        "ix_orders_shipping",
        "orders",
        ["seller_id", "shipping_type", sa.literal_column("order_date DESC NULLS LAST"), sa.literal_column("id DESC")],
        unique=False,
    )
    op.create_index(
        "ix_orders_status",
        "orders",
        ["seller_id", "status_group", sa.literal_column("order_date DESC NULLS LAST"), sa.literal_column("id DESC")],
        unique=False,
    )
    op.create_index("uq_orders_order_number", "orders", ["seller_id", "order_number"], unique=True)
    op.create_table(
        "pull_session",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_pull_session")),
    )
    op.create_index(
        "ix_pull_session_recent", "pull_session", ["seller_id", sa.literal_column("opened_at DESC")], unique=False
    )
    op.create_index(
        "uq_pull_session_open", "pull_session", ["seller_id"], unique=True, postgresql_where=sa.text("state = 'open'")
    )
    op.create_table(
        "sales_report",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("date_to", sa.Date(), nullable=False),
        sa.Column("gross_sales", sa.Numeric(), nullable=True),
        sa.Column("order_count", sa.BigInteger(), nullable=True),
        sa.Column("product_amount", sa.Numeric(), nullable=True),
        sa.Column("total_fees", sa.Numeric(), nullable=True),
        sa.Column("shipping_amount", sa.Numeric(), nullable=True),
        sa.Column("total_refund_amount", sa.Numeric(), nullable=True),
        sa.Column("refunded_orders", sa.BigInteger(), nullable=True),
        sa.Column("refunded_fees", sa.Numeric(), nullable=True),
        sa.Column("adjustments", sa.Numeric(), nullable=True),
        sa.Column("net_sales_minus_fees", sa.Numeric(), nullable=True),
        sa.Column("net_sales", sa.Numeric(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "month", name=op.f("pk_sales_report")),
    )
    op.create_table(
        "order_item",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("order_id", sa.BigInteger(), nullable=False),
        sa.Column("sku_id", sa.BigInteger(), nullable=True),
        sa.Column("product_name", sa.Text(), nullable=True),
        sa.Column("product_line", sa.Text(), nullable=True),
        sa.Column("condition", sa.Text(), nullable=True),
        sa.Column("set_name", sa.Text(), nullable=True),
        sa.Column("rarity", sa.Text(), nullable=True),
        sa.Column("quantity", sa.Integer(), nullable=True),
        sa.Column("main_photo_url", sa.Text(), nullable=True),
        sa.Column("unit_price", sa.Numeric(), nullable=True),
        sa.CheckConstraint(
            "abs(unit_price) < 100000000 AND scale(unit_price) <= 4", name=op.f("ck_order_item_unit_price")
        ),
        sa.ForeignKeyConstraint(
            ["seller_id", "order_id"], ["orders.seller_id", "orders.id"], name=op.f("fk_order_item_seller_id_order_id")
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_order_item")),
    )
    op.create_index("ix_order_item_order", "order_item", ["seller_id", "order_id", "id"], unique=False)
    op.create_index(
        "uq_order_item_sku",
        "order_item",
        ["seller_id", "order_id", "sku_id"],
        unique=True,
        postgresql_where=sa.text("sku_id IS NOT NULL"),
    )
    op.create_table(
        "pull_session_order",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("session_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("order_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("deferred_turn", sa.Integer(), nullable=True),
        sa.Column("pulled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("in_review", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["seller_id", "order_id"],
            ["orders.seller_id", "orders.id"],
            name=op.f("fk_pull_session_order_seller_id_order_id"),
        ),
        sa.ForeignKeyConstraint(
            ["seller_id", "session_id"],
            ["pull_session.seller_id", "pull_session.id"],
            name=op.f("fk_pull_session_order_seller_id_session_id"),
        ),
        sa.PrimaryKeyConstraint("seller_id", "session_id", "order_id", name=op.f("pk_pull_session_order")),
    )
    op.create_index("ix_pull_session_order_order", "pull_session_order", ["seller_id", "order_id"], unique=False)
    op.add_column("upload", sa.Column("kind", sa.Text(), server_default="inventory", nullable=False))
