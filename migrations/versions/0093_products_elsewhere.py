"""Products carry the ids that other projects and markets give them; Scryfall's were read from the
addresses of pictures.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0093"
down_revision = "0092"


def upgrade() -> None:
    op.create_table(
        "product_elsewhere",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("product_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "id", "product_id", name=op.f("pk_product_elsewhere")),
    )
    for statement in shared_table("product_elsewhere"):
        op.get_bind().exec_driver_sql(statement)
    op.execute(r"""
        INSERT INTO product_elsewhere (kind, id, product_id)
        SELECT 'scryfall', substring(picture_url from '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'),
               id
          FROM product
         WHERE NOT provisional AND picture_url ~ '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
    """)


def downgrade() -> None:
    op.drop_table("product_elsewhere")
