"""A box may have a label. Its rows keep a number, so no table is written anew: labels are a table
beside them.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0110"
down_revision = "0109"


def upgrade() -> None:
    op.create_table(
        "shelf_box",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("box", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("way", sa.Text(collation="C"), nullable=False),
        sa.CheckConstraint("box > 1000000", name=op.f("ck_shelf_box_number")),
        sa.CheckConstraint("char_length(label) BETWEEN 1 AND 12", name=op.f("ck_shelf_box_label")),
        sa.PrimaryKeyConstraint("seller_id", "box", name=op.f("pk_shelf_box")),
        sa.UniqueConstraint("seller_id", "way", name="uq_shelf_box_way"),
    )
    for statement in tenant_table("shelf_box"):
        op.get_bind().exec_driver_sql(statement)
    for table in ("shelf_count", "quick_add"):
        op.add_column(table, sa.Column("box_label", sa.Text(), nullable=True))


PLACED = ("card_location", "shelf_count", "quick_add")
LABELED = "SELECT box FROM shelf_box WHERE seller_id = %(seller)s ORDER BY way"
HIGHEST = " UNION ALL ".join(
    f"SELECT max(box) FROM {table} WHERE seller_id = %(seller)s AND box <= 1000000"
    for table in PLACED
)


def downgrade() -> None:
    """Boxes with a label go on under the next free numbers, in their order: no place is lost."""
    run = op.get_bind().exec_driver_sql
    with op.get_context().autocommit_block():
        try:
            for (seller_id,) in run("SELECT id FROM seller ORDER BY id").fetchall():
                run("SELECT set_config('app.seller_id', %(id)s, false)", {"id": str(seller_id)})
                of_seller = {"seller": seller_id}
                labeled = run(LABELED, of_seller).fetchall()
                highest = max(row[0] or 0 for row in run(HIGHEST, of_seller)) if labeled else 0
                for number, (box,) in enumerate(labeled, highest + 1):
                    for table in PLACED:
                        run(
                            f"UPDATE {table} SET box = %(number)s"
                            " WHERE seller_id = %(seller)s AND box = %(box)s",
                            of_seller | {"number": number, "box": box},
                        )
        finally:
            run("SELECT set_config('app.seller_id', '', false)")
    for table in ("quick_add", "shelf_count"):
        op.drop_column(table, "box_label")
    op.drop_table("shelf_box")
