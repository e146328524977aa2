"""What the marketplace listed of a card when a contribution of it was published: only copies beyond
that promote it.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0056"
down_revision = "0053"

LISTED = """
    INSERT INTO published_contribution (seller_id, card_id, published_at, listed)
    SELECT p.seller_id, p.id, p.updated_at,
           coalesce(jsonb_object_agg(l.id, l.quantity) FILTER (WHERE l.id IS NOT NULL), '{}')
      FROM card p LEFT JOIN product a ON a.id = p.product_id
      LEFT JOIN card l
        ON l.seller_id = p.seller_id AND l.product_id = coalesce(a.adopted_by, p.product_id)
       AND l.condition IS NOT DISTINCT FROM p.condition
       AND l.printing = p.printing AND l.language = p.language
       AND l.contribution IS NULL AND NOT l.custom
     WHERE p.contribution = 'published'
     GROUP BY p.seller_id, p.id, p.updated_at
"""


def upgrade() -> None:
    op.create_table(
        "published_contribution",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("listed", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "card_id", name=op.f("pk_published_contribution")),
    )
    connection = op.get_bind().connection.driver_connection
    connection.execute(LISTED)
    for statement in tenant_table("published_contribution"):
        connection.execute(statement)


def downgrade() -> None:
    op.drop_table("published_contribution")
