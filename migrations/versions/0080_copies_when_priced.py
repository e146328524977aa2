"""A line of an offer keeps how many copies the shop had, or had coming, when it was priced."""

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0079"


def upgrade() -> None:
    op.add_column("buying_offer_line", sa.Column("held", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("buying_offer_line", "held")
