"""A card that was not found in a pull stays work until somebody says what was done about it. What is
missing in the open pulls is noted with its item. A phone's link may open the queue of all games.
"""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"

TABLE = "pull_session_item"
OPEN = "missing_at IS NOT NULL AND missing_outcome IS NULL"
MISSING = """
    UPDATE pull_session_item i SET missing_at = found.at, missing_by = found.person
      FROM (SELECT DISTINCT ON (m.session_id, m.item_id) m.session_id, m.item_id,
                   m.received_at AS at, m.person
              FROM pull_mark m
              JOIN pull_session s ON s.seller_id = m.seller_id AND s.id = m.session_id
             WHERE m.seller_id = %(seller)s AND s.seller_id = %(seller)s AND s.state = 'open'
               AND m.kind = 'missing' AND NOT m.undone
             ORDER BY m.session_id, m.item_id, m.received) found
     WHERE i.seller_id = %(seller)s AND i.session_id = found.session_id
       AND i.item_id = found.item_id AND i.missing_at IS NULL
       AND coalesce(i.quantity, 1) > (
           SELECT coalesce(sum(m.quantity), 0) FROM pull_mark m
            WHERE m.seller_id = %(seller)s AND m.session_id = i.session_id
              AND m.item_id = i.item_id AND m.kind = 'pulled' AND NOT m.undone)
"""


def upgrade() -> None:
    op.add_column(TABLE, sa.Column("missing_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(TABLE, sa.Column("missing_by", sa.Text(), nullable=True))
    op.add_column(TABLE, sa.Column("missing_outcome", sa.Text(), nullable=True))
    op.add_column(TABLE, sa.Column("missing_refund", sa.Numeric(), nullable=True))
    op.add_column(TABLE, sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True))
    op.create_check_constraint(
        op.f("ck_pull_session_item_missing_outcome"),
        TABLE,
        "missing_outcome IN ('found', 'other_copy', 'refund', 'message')",
    )
    op.create_check_constraint(
        op.f("ck_pull_session_item_missing_refund"),
        TABLE,
        "abs(missing_refund) < 100000000 AND scale(missing_refund) <= 4",
    )
    op.create_index(
        "ix_pull_session_item_missing",
        TABLE,
        ["seller_id", "order_id"],
        postgresql_where=sa.text(OPEN),
    )
    op.alter_column("pull_link", "product_line", nullable=True)
    run = op.get_bind().exec_driver_sql
    for (seller_id,) in run("SELECT id FROM seller ORDER BY id").fetchall():
        run("SELECT set_config('app.seller_id', %(id)s, true)", {"id": str(seller_id)})
        run(MISSING, {"seller": seller_id})
    run("SELECT set_config('app.seller_id', '', true)")


def downgrade() -> None:
    op.execute("DELETE FROM pull_link WHERE product_line IS NULL")
    op.alter_column("pull_link", "product_line", nullable=False)
    op.drop_index("ix_pull_session_item_missing", table_name=TABLE)
    for column in ("settled_at", "missing_refund", "missing_outcome", "missing_by", "missing_at"):
        op.drop_column(TABLE, column)
