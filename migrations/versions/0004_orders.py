"""Orders with their items, refunds, shipping and feedback; their counts; pull sessions; sales
reports.
"""

import json

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0004"
down_revision = "0003"

TENANT = (
    "orders",
    "order_item",
    "order_tally",
    "pull_session",
    "pull_session_order",
    "sales_report",
)


# Unicode's full case folding, the same under every locale of a database. `folded` is inlined
# where it stands in a statement; the table of what folds is Python's, and used for texts that are
# not ASCII alone.
FOLDS = {
    chr(code): chr(code).casefold()
    for code in range(0x80, 0x110000)
    if not 0xD800 <= code <= 0xDFFF and chr(code).casefold() != chr(code)
}
FOLDED = (
    f"""
CREATE FUNCTION public.folded_unicode(value text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT string_agg(coalesce($folds${json.dumps(FOLDS, ensure_ascii=False)}$folds$::jsonb ->> letter, letter), '' ORDER BY place)
              FROM unnest(string_to_array(lower(value COLLATE "C"), NULL)) WITH ORDINALITY AS letters (letter, place));
END $$
""",
    """
CREATE FUNCTION public.folded(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(value) > length(value) THEN public.folded_unicode(value) ELSE lower(value COLLATE "C") END
$$
""",
)

# One statement merges the changes that a statement makes to the counts. Transactions of one seller
# that change counts do so one after another, whatever else they do (the lock ends with the
# transaction); a transaction that changes no count takes no lock.
TALLY = """
CREATE FUNCTION tally_orders_on_{event}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH changed AS MATERIALIZED (
        SELECT seller_id, order_date, status_group, shipping_type, refund_amt IS NOT NULL AS refunded, sum(change)::bigint AS change
          FROM ({rows}) AS touched GROUP BY 1, 2, 3, 4, 5 HAVING sum(change) <> 0
    ), alone AS MATERIALIZED (
        SELECT count(pg_advisory_xact_lock(1869899883, hashint8(seller_id))::text) AS locks
          FROM (SELECT DISTINCT seller_id FROM changed ORDER BY 1) AS sellers
    )
    INSERT INTO order_tally AS tally (seller_id, period, begins, status_group, shipping_type, refunded, orders)
    SELECT seller_id, period, begins, status_group, shipping_type, refunded, sum(change)
      FROM changed CROSS JOIN LATERAL (VALUES
               ('ever', DATE '-infinity'), ('month', date_trunc('month', order_date)::date), ('day', order_date)
           ) AS periods (period, begins)
     WHERE begins IS NOT NULL AND (SELECT locks FROM alone) > 0
     GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(change) <> 0 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (seller_id, period, begins, status_group, shipping_type, refunded)
        DO UPDATE SET orders = tally.orders + excluded.orders;
    RETURN NULL;
END $$
"""
TALLY_TRIGGER = """
CREATE TRIGGER tally_orders_on_{event} AFTER {event} ON orders REFERENCING {tables}
   FOR EACH STATEMENT EXECUTE FUNCTION tally_orders_on_{event}()
"""
OLD, NEW = "OLD TABLE AS old_rows", "NEW TABLE AS new_rows"
LOST = "SELECT o.*, -1 AS change FROM old_rows AS o"
CAME = "SELECT n.*, 1 AS change FROM new_rows AS n"
EVENTS = {
    "insert": (NEW, CAME),
    "delete": (OLD, LOST),
    "update": (f"{OLD} {NEW}", f"{CAME} UNION ALL {LOST}"),
}


def upgrade() -> None:
    execute = op.get_bind().exec_driver_sql
    for statement in FOLDED:
        execute(statement)
    create_tables()
    for table in TENANT:
        for statement in tenant_table(table):
            execute(statement)
    for event, (tables, rows) in EVENTS.items():
        execute(TALLY.format(event=event, rows=rows))
        execute(TALLY_TRIGGER.format(event=event, tables=tables))


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
            "seller_id",
            "period",
            "begins",
            "status_group",
            "shipping_type",
            "refunded",
            name=op.f("pk_order_tally"),
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
                "coalesce(placed_at_given, timezone('America/New_York', order_date::timestamp))",
                persisted=True,
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
        sa.Column(
            "buyer_key",
            sa.Text(collation="C"),
            sa.Computed("left(public.folded(buyer_name), 200)", persisted=True),
            nullable=True,
        ),
        sa.Column(
            "search_text",
            sa.Text(collation="C"),
            sa.Computed(
                "left(public.folded(order_number), 200) || chr(1) || coalesce(left(public.folded(buyer_name), 200), '')",
                persisted=True,
            ),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "abs(product_amt) < 100000000 AND scale(product_amt) <= 4",
            name=op.f("ck_orders_product_amt"),
        ),
        sa.CheckConstraint(
            "abs(refund_amt) < 100000000 AND scale(refund_amt) <= 4",
            name=op.f("ck_orders_refund_amt"),
        ),
        sa.CheckConstraint(
            "abs(refund_product_amt) < 100000000 AND scale(refund_product_amt) <= 4",
            name=op.f("ck_orders_refund_product_amt"),
        ),
        sa.CheckConstraint(
            "abs(refund_shipping_amt) < 100000000 AND scale(refund_shipping_amt) <= 4",
            name=op.f("ck_orders_refund_shipping_amt"),
        ),
        sa.CheckConstraint(
            "abs(shipping_amt) < 100000000 AND scale(shipping_amt) <= 4",
            name=op.f("ck_orders_shipping_amt"),
        ),
        sa.CheckConstraint(
            "abs(total_amt) < 100000000 AND scale(total_amt) <= 4", name=op.f("ck_orders_total_amt")
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_orders")),
    )
    op.create_index(
        "ix_orders_date",
        "orders",
        [
            "seller_id",
            sa.literal_column("order_date DESC NULLS LAST"),
            sa.literal_column("id DESC"),
        ],
        unique=False,
        postgresql_include=["status_group", "feedback_rating", "search_text"],
    )
    op.create_index(
        "ix_orders_total",
        "orders",
        ["seller_id", sa.literal_column("total_amt DESC NULLS LAST"), sa.literal_column("id DESC")],
        unique=False,
    )
    op.create_index(
        "ix_orders_buyer",
        "orders",
        ["seller_id", "buyer_key", "id"],
        unique=False,
        postgresql_include=["order_placed_at", "total_amt"],
    )
    op.create_index(
        "ix_orders_marked",
        "orders",
        ["seller_id", "id"],
        unique=False,
        postgresql_where=sa.text("shipped_marked_at IS NOT NULL"),
    )
    op.create_index(
        "ix_orders_dismissed",
        "orders",
        ["seller_id", "id"],
        unique=False,
        postgresql_where=sa.text("pull_dismissed_at IS NOT NULL"),
    )
    op.create_index(
        "ix_orders_pullable",
        "orders",
        [
            "seller_id",
            sa.literal_column("order_date DESC NULLS LAST"),
            sa.literal_column("id DESC"),
        ],
        unique=False,
        postgresql_where=sa.text(
            "to_ship AND shipped_marked_at IS NULL AND pull_dismissed_at IS NULL"
        ),
    )
    op.create_index(
        "ix_orders_refunded",
        "orders",
        [
            "seller_id",
            sa.literal_column("order_date DESC NULLS LAST"),
            sa.literal_column("id DESC"),
        ],
        unique=False,
        postgresql_where=sa.text("refund_amt IS NOT NULL"),
    )
    op.create_index(
        "ix_orders_shipping",
        "orders",
        [
            "seller_id",
            "shipping_type",
            sa.literal_column("order_date DESC NULLS LAST"),
            sa.literal_column("id DESC"),
        ],
        unique=False,
    )
    op.create_index(
        "ix_orders_status",
        "orders",
        [
            "seller_id",
            "status_group",
            sa.literal_column("order_date DESC NULLS LAST"),
            sa.literal_column("id DESC"),
        ],
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
        "ix_pull_session_recent",
        "pull_session",
        ["seller_id", sa.literal_column("opened_at DESC")],
        unique=False,
    )
    op.create_index(
        "uq_pull_session_open",
        "pull_session",
        ["seller_id"],
        unique=True,
        postgresql_where=sa.text("state = 'open'"),
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
            "abs(unit_price) < 100000000 AND scale(unit_price) <= 4",
            name=op.f("ck_order_item_unit_price"),
        ),
        sa.ForeignKeyConstraint(
            ["seller_id", "order_id"],
            ["orders.seller_id", "orders.id"],
            name=op.f("fk_order_item_seller_id_order_id"),
        ),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_order_item")),
    )
    op.create_index(
        "ix_order_item_order", "order_item", ["seller_id", "order_id", "id"], unique=False
    )
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
        sa.PrimaryKeyConstraint(
            "seller_id", "session_id", "order_id", name=op.f("pk_pull_session_order")
        ),
    )
    op.create_index(
        "ix_pull_session_order_order", "pull_session_order", ["seller_id", "order_id"], unique=False
    )
    op.add_column(
        "upload", sa.Column("kind", sa.Text(), server_default="inventory", nullable=False)
    )
