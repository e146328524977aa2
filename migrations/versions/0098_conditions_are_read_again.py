"""Cards whose condition could not be read are read again at the next upload of their shop: the
printings of all games are known now. Without the hash of its texts a card is held against the
catalog again.

Seller after seller, each by itself, so that nobody waits long and a migration that was killed goes
on.
"""

from alembic import op

revision = "0098"
down_revision = "0097"

UNREAD = """
    UPDATE card SET identity_hash = 0
     WHERE seller_id = %(seller)s AND condition IS NULL AND identity_hash <> 0
"""


def upgrade() -> None:
    run = op.get_bind().exec_driver_sql
    with op.get_context().autocommit_block():
        try:
            for (seller_id,) in run("SELECT id FROM seller ORDER BY id").fetchall():
                run("SELECT set_config('app.seller_id', %(id)s, false)", {"id": str(seller_id)})
                run(UNREAD, {"seller": seller_id})
        finally:
            run("SELECT set_config('app.seller_id', '', false)")


def downgrade() -> None:
    pass
