"""When a card had a promotion's price, so that a promotion says what was sold in it."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0112"
down_revision = "0111"

TABLE = "promotion_card"
# Cards that have a promotion's price now.
NOW = """
    INSERT INTO promotion_card (seller_id, sale_id, marketplace_id, since)
    SELECT seller_id, source_id, marketplace_id, since FROM price_decision
     WHERE seller_id = %(seller)s AND kind = 'sale'
    ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sale_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("marketplace_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint(
            "seller_id", "sale_id", "marketplace_id", "since", name=op.f("pk_promotion_card")
        ),
    )
    op.create_index(
        "uq_promotion_card_now",
        TABLE,
        ["seller_id", "sale_id", "marketplace_id"],
        unique=True,
        postgresql_where=sa.text("until IS NULL"),
    )
    run = op.get_bind().exec_driver_sql
    for statement in tenant_table(TABLE):
        run(statement)
    for (seller_id,) in run("SELECT id FROM seller ORDER BY id").fetchall():
        run("SELECT set_config('app.seller_id', %(id)s, true)", {"id": str(seller_id)})
        run(NOW, {"seller": seller_id})
    run("SELECT set_config('app.seller_id', '', true)")


def downgrade() -> None:
    op.drop_table(TABLE)
