"""A line of an offer says by which price it was valued, and which finishes could be chosen."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0106"
down_revision = "0105"


def upgrade() -> None:
    for name in ("reason_code", "price_of"):
        op.add_column("buying_offer_line", sa.Column(name, sa.Text(), nullable=True))
    op.add_column("buying_offer_line", sa.Column("price_taken", JSONB(), nullable=True))
    finishes = sa.Column("other_finishes", JSONB(), server_default="[]", nullable=False)
    op.add_column("buying_offer_line", finishes)


def downgrade() -> None:
    for name in ("other_finishes", "price_taken", "price_of", "reason_code"):
        op.drop_column("buying_offer_line", name)
