"""A refund is full or partial, in whatever letters it came; any other word of a marketplace is no
type, as in an upload of today.

Seller after seller, each by itself, so that nobody waits long and a migration that was killed goes
on.
"""

from alembic import op

revision = "0095"
down_revision = "0094"

KNOWN = "('full', 'partial')"
REFUNDS = f"""
    UPDATE orders o SET refund_type = CASE WHEN word IN {KNOWN} THEN word END
      FROM (SELECT id, lower(btrim(refund_type, E' \\t\\r\\n')) AS word FROM orders
             WHERE seller_id = %(seller)s AND refund_amt IS NOT NULL
               AND refund_type NOT IN {KNOWN}) AS found
     WHERE o.seller_id = %(seller)s AND o.id = found.id
"""


def upgrade() -> None:
    run = op.get_bind().exec_driver_sql
    with op.get_context().autocommit_block():
        try:
            for (seller_id,) in run("SELECT id FROM seller ORDER BY id").fetchall():
                run("SELECT set_config('app.seller_id', %(id)s, false)", {"id": str(seller_id)})
                run(REFUNDS, {"seller": seller_id})
        finally:
            run("SELECT set_config('app.seller_id', '', false)")


def downgrade() -> None:
    pass
