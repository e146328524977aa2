"""Members contribute cards of their own: rows of the inventory that no file of the marketplace
brought.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("card", sa.Column("contribution", sa.Text(), nullable=True))
    op.add_column("card", sa.Column("contributed_by", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_card_contribution",
        "card",
        ["seller_id", "contribution"],
        postgresql_where=sa.text("contribution IS NOT NULL"),
    )
