"""A pull session keeps orders and items as they were when it was opened; what uploads said of a
refund's total is told apart from what the refund comes to.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0016"
down_revision = "0015"

# A table's owner is bound by its policies as well, but for this.
READ_WHOLE = ("orders", "order_item", "pull_session_order", "order_tally", "pull_session_item")
ITEM = (
    "sku_id",
    "product_name",
    "product_line",
    "condition",
    "set_name",
    "rarity",
    "quantity",
    "main_photo_url",
)


def upgrade() -> None:
    add_columns()
    create_items()
    execute = op.get_bind().exec_driver_sql
    for table in READ_WHOLE:
        execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    keep_what_is_there(execute)
    find_lost_refunds(execute)
    for table in READ_WHOLE:
        execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    for name in ("shipping_type", "item_count"):
        op.alter_column("pull_session_order", name, nullable=False)
    fits = "abs(refund_total_given) < 100000000 AND scale(refund_total_given) <= 4"
    op.create_check_constraint(op.f("ck_orders_refund_total_given"), "orders", fits)


def add_columns() -> None:
    for name in ("refund_total_given", "items_hash"):
        op.add_column("orders", sa.Column(name, sa.Numeric()))
    changed = sa.Column("changed", sa.ARRAY(sa.Text()), server_default="{}", nullable=False)
    kept = (
        sa.Column("status", sa.Text()),
        sa.Column("refund_amt", sa.Numeric()),
        sa.Column("shipping_type", sa.Text()),
        sa.Column("order_date", sa.Date()),
        sa.Column("item_count", sa.BigInteger()),
        sa.Column("items_hash", sa.Numeric()),
    )
    for column in (changed, *kept):
        op.add_column("pull_session_order", column)


def create_items() -> None:
    key = ("seller_id", "session_id", "order_id")
    op.create_table(
        "pull_session_item",
        *(
            sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)
            for name in (*key, "item_id")
        ),
        sa.Column("sku_id", sa.BigInteger()),
        *(sa.Column(name, sa.Text()) for name in ITEM[1:-2]),
        sa.Column("quantity", sa.Integer()),
        sa.Column("main_photo_url", sa.Text()),
        sa.ForeignKeyConstraint(
            key,
            [f"pull_session_order.{name}" for name in key],
            name=op.f("fk_pull_session_item_seller_id_session_id_order_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(*key, "item_id", name=op.f("pk_pull_session_item")),
    )
    for statement in tenant_table("pull_session_item"):
        op.get_bind().exec_driver_sql(statement)


def keep_what_is_there(execute) -> None:
    """Sessions that were opened before keep what their orders are now."""
    execute("""
        UPDATE pull_session_order p
           SET status = o.status, refund_amt = o.refund_amt, shipping_type = o.shipping_type, order_date = o.order_date,
               item_count = coalesce(o.shipping_item_count, o.items_quantity)
          FROM orders o WHERE o.seller_id = p.seller_id AND o.id = p.order_id
    """)
    execute(f"""
        INSERT INTO pull_session_item (seller_id, session_id, order_id, item_id, {", ".join(ITEM)})
        SELECT p.seller_id, p.session_id, p.order_id, i.id, {", ".join(f"i.{name}" for name in ITEM)}
          FROM pull_session_order p JOIN order_item i ON i.seller_id = p.seller_id AND i.order_id = p.order_id
    """)
    execute(f"""
        UPDATE pull_session_order p SET items_hash = i.items_hash
          FROM (SELECT seller_id, session_id, order_id,
                       sum(hashtextextended(ROW({", ".join(ITEM[:-1])})::text, 0)) AS items_hash
                  FROM pull_session_item GROUP BY 1, 2, 3) i
         WHERE i.seller_id = p.seller_id AND i.session_id = p.session_id AND i.order_id = p.order_id
    """)


def find_lost_refunds(execute) -> None:
    """Find the amounts of refunds that have none: their other fields were stored.

    Each stored amount was given as its refund's total.
    """
    execute("UPDATE orders SET refund_total_given = refund_amt WHERE refund_amt IS NOT NULL")
    parts = "coalesce(refund_product_amt + refund_shipping_amt, refund_product_amt, refund_shipping_amt)"
    execute(f"""
        UPDATE orders
           SET refund_amt = coalesce(CASE WHEN abs({parts}) < 100000000 THEN {parts} END,
                                     CASE WHEN coalesce(lower(btrim(refund_type)), '') IN ('', 'full') THEN total_amt END, 0.00)
         WHERE refund_amt IS NULL AND num_nonnulls(refund_type, refund_origin, refund_reason, refund_note, refund_product_amt,
                                                   refund_shipping_amt) > 0
    """)
