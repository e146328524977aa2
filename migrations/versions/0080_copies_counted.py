"""A line of an offer keeps how many copies the shop held when it was priced, and a line of an order
how many of its copies are back in stock.
"""

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0079"


def upgrade() -> None:
    op.add_column("buying_offer_line", sa.Column("held", sa.BigInteger(), nullable=True))
    restocked = sa.Column("restocked", sa.Integer(), server_default="0", nullable=False)
    op.add_column("order_item", restocked)


def downgrade() -> None:
    op.drop_column("order_item", "restocked")
    op.drop_column("buying_offer_line", "held")
