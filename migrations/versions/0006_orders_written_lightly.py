"""Orders with fewer indexes and derived columns, and their counts in blocks of days: an upload of
many writes a third of what it did.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0006"
down_revision = "0005"

KIND = "seller_id, status_group, shipping_type, refunded"
DAYS = ", ".join(
    f"coalesce(sum(change) FILTER (WHERE day & 31 = {n}), 0)::integer" for n in range(32)
)

# One statement merges the changes that a statement makes to the counts: by days first, so that an
# order that moves from one day of a block to another is seen. Transactions of one seller that
# change counts do so one after another, whatever else they do (the lock ends with the transaction);
# a transaction that changes no count takes no lock.
CHANGED = f"""
    SELECT {KIND}, day, sum(change)::integer AS change FROM (
        SELECT seller_id, status_group, shipping_type, refund_amt IS NOT NULL AS refunded, order_date - DATE '2000-01-01' AS day, change
          FROM ({{rows}}) AS rows
    ) AS touched GROUP BY {KIND}, day HAVING sum(change) <> 0
"""
COUNTED = f"""
    SELECT {KIND}, 'ever' AS period, 0 AS block, sum(change) AS orders, NULL::integer[] AS days
      FROM changed GROUP BY {KIND} HAVING sum(change) <> 0
     UNION ALL
    SELECT {KIND}, 'days', day >> 5, sum(change), ARRAY[{DAYS}] FROM changed WHERE day IS NOT NULL GROUP BY {KIND}, day >> 5
"""
KEY = "seller_id, period, block, status_group, shipping_type, refunded"
TALLY = f"""
CREATE OR REPLACE FUNCTION tally_orders_on_{{event}}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH changed AS MATERIALIZED ({CHANGED}), alone AS MATERIALIZED (
        SELECT count(pg_advisory_xact_lock(1869899883, hashint8(seller_id))::text) AS locks
          FROM (SELECT DISTINCT seller_id FROM changed ORDER BY 1) AS sellers
    ), counted AS ({COUNTED})
    INSERT INTO order_tally AS tally ({KEY}, orders, days)
    SELECT {KEY}, orders, days FROM counted WHERE (SELECT locks FROM alone) > 0 ORDER BY {KEY}
        ON CONFLICT ({KEY}) DO UPDATE
       SET orders = tally.orders + excluded.orders,
           days = CASE WHEN excluded.days IS NOT NULL THEN ARRAY(
                      SELECT a + b FROM unnest(tally.days, excluded.days) WITH ORDINALITY AS sums (a, b, place) ORDER BY place) END;
    RETURN NULL;
END $$
"""
LOST = "SELECT o.*, -1 AS change FROM old_rows AS o"
CAME = "SELECT n.*, 1 AS change FROM new_rows AS n"
EVENTS = {"insert": CAME, "delete": LOST, "update": f"{CAME} UNION ALL {LOST}"}

# Most statuses are told from a spelling of Cancelled and from a blank by how they begin.
STATUS_GROUP = (
    """CASE WHEN status COLLATE "C" >= 'Cb' AND status COLLATE "C" < 'c' THEN status"""
    " WHEN btrim(status) <> '' IS NOT TRUE THEN 'Unknown'"
    " WHEN lower(btrim(status)) IN ('canceled', 'cancelled') THEN 'Cancelled' ELSE status END"
)
NEWEST = [sa.literal_column("order_date DESC NULLS LAST"), sa.literal_column("id DESC")]
BUYER_KEY = "left(public.folded(buyer_name), 200)"


def upgrade() -> None:
    execute = op.get_bind().exec_driver_sql
    for name in ("total", "buyer", "marked", "dismissed", "pullable", "date", "shipping", "status"):
        op.drop_index(f"ix_orders_{name}", "orders")
    for name in ("to_ship", "order_placed_at", "buyer_key", "search_text", "status_group"):
        op.drop_column("orders", name)
    text = sa.Text(collation="C")
    search_text = f"replace(left(public.folded(order_number), 200), chr(1), '') || chr(1) || coalesce({BUYER_KEY}, '')"
    op.add_column(
        "orders",
        sa.Column("search_text", text, sa.Computed(search_text, persisted=True), nullable=False),
    )
    status_group = sa.Column(
        "status_group", sa.Text(), sa.Computed(STATUS_GROUP, persisted=True), nullable=False
    )
    op.add_column("orders", status_group)
    create_indexes()
    for event, rows in EVENTS.items():
        execute(TALLY.format(event=event, rows=rows))
    op.drop_table("order_tally")
    create_tally()
    # A table's owner is bound by its policies as well, but for this.
    execute("ALTER TABLE orders NO FORCE ROW LEVEL SECURITY")
    execute(f"""
        WITH changed AS MATERIALIZED ({CHANGED.format(rows="SELECT o.*, 1 AS change FROM orders AS o")}), counted AS ({COUNTED})
        INSERT INTO order_tally ({KEY}, orders, days) SELECT {KEY}, orders, days FROM counted
    """)
    execute("ALTER TABLE orders FORCE ROW LEVEL SECURITY")
    for statement in tenant_table("order_tally"):
        execute(statement)


def create_indexes() -> None:
    op.create_index(
        "ix_orders_date",
        "orders",
        ["seller_id", *NEWEST],
        postgresql_include=[
            "status_group",
            "shipping_type",
            "feedback_rating",
            "total_amt",
            "placed_at_given",
            "search_text",
        ],
    )
    op.create_index("ix_orders_status", "orders", ["seller_id", "status_group", *NEWEST])
    op.create_index(
        "ix_orders_shipping",
        "orders",
        ["seller_id", "shipping_type", *NEWEST],
        postgresql_where=sa.text("shipping_type <> 'pwe'"),
    )
    op.create_index(
        "ix_orders_aside",
        "orders",
        ["seller_id", "id"],
        postgresql_where=sa.text("shipped_marked_at IS NOT NULL OR pull_dismissed_at IS NOT NULL"),
    )


def create_tally() -> None:
    op.create_table(
        "order_tally",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("block", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("status_group", sa.Text(), nullable=False),
        sa.Column("shipping_type", sa.Text(), nullable=False),
        sa.Column("refunded", sa.Boolean(), nullable=False),
        sa.Column("orders", sa.BigInteger(), nullable=False),
        sa.Column("days", sa.ARRAY(sa.Integer()), nullable=True),
        sa.PrimaryKeyConstraint(
            "seller_id",
            "period",
            "block",
            "status_group",
            "shipping_type",
            "refunded",
            name=op.f("pk_order_tally"),
        ),
    )
