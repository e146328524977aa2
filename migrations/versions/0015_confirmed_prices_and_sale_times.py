"""Prices that a seller confirmed, targets that are a sale's price, and the sales' timers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from cardsync.platform.database.migrate import tenant_table

revision = "0015"
down_revision = "0014"

TABLES = ("pricing_sale", "price_rollback", "sync_state")
# A rollback that is being prepared now empties the export from now on.
PREPARING = """
    UPDATE sync_state s SET rollback_preparing_until = r.expires_at
      FROM price_rollback r WHERE r.seller_id = s.seller_id AND r.state = 'requested'
"""
# Which cards ask for a sale's price is known after the next run.
# Sales that are on, and those that ended of late, bring one.
LATELY_ENDED = """
    UPDATE sync_state s SET sales_in_force = ended.ids
      FROM (SELECT seller_id, array_agg(id) AS ids FROM pricing_sale
             WHERE enabled AND ends_at BETWEEN now() - interval '7 days' AND now()
             GROUP BY seller_id) ended
     WHERE ended.seller_id = s.seller_id
"""
TIMERS = """
    INSERT INTO work_due (seller_id, stream, due_at)
    SELECT seller_id, 'sales', now() FROM pricing_sale
     WHERE enabled AND ends_at > now() - interval '7 days' GROUP BY seller_id
"""


def upgrade() -> None:
    key = ("seller_id", "marketplace_id")
    op.create_table(
        "confirmed_price",
        *(sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False) for name in key),
        sa.Column("price", sa.Numeric(12, 4), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(*key, name=op.f("pk_confirmed_price")),
    )
    key = (*key, "sale_id")
    op.create_table(
        "sale_target",
        *(sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False) for name in key),
        sa.PrimaryKeyConstraint(*key, name=op.f("pk_sale_target")),
    )
    for table in ("confirmed_price", "sale_target"):
        for statement in tenant_table(table):
            op.execute(statement)
    op.add_column("sync_state", sa.Column("rollback_preparing_until", sa.DateTime(timezone=True)))
    op.add_column("sync_state", sa.Column("export_until", sa.DateTime(timezone=True)))
    op.add_column(
        "sync_state",
        sa.Column("sales_in_force", ARRAY(sa.BigInteger()), server_default="{}", nullable=False),
    )
    # The owner of the tables need not be a superuser: for these statements they are open to it.
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    for statement in (PREPARING, LATELY_ENDED, TIMERS):
        op.execute(statement)
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
