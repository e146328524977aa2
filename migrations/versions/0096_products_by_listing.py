"""Products are found by the marketplace's id, whatever their set."""

import sqlalchemy as sa
from alembic import op

revision = "0096"
down_revision = "0095"


def upgrade() -> None:
    op.create_index(
        "ix_product_listing",
        "product",
        ["marketplace_product_id"],
        postgresql_where=sa.text("marketplace_product_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_product_listing", table_name="product")
