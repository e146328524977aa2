"""A card says whether its price is My Store Price, because the marketplace has none. The next upload
of a shop finds out: no price of the marketplace was stored for such a card until then.
"""

import sqlalchemy as sa
from alembic import op

revision = "0087"
down_revision = "0086"


def upgrade() -> None:
    op.add_column(
        "card",
        sa.Column("my_store_priced", sa.Boolean(), server_default=sa.false(), nullable=False),
    )


def downgrade() -> None:
    op.drop_column("card", "my_store_priced")
