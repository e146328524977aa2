"""Market observations with their clocks: sales, listings and daily prices by product."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0041"
down_revision = "0040"


def number(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def count(name: str) -> sa.Column:
    return sa.Column(name, sa.Integer(), nullable=False)


def cell() -> sa.Column:
    return sa.Column("cell", sa.SmallInteger(), autoincrement=False, nullable=False)


def moment(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def text(name: str) -> sa.Column:
    return sa.Column(name, sa.Text(), nullable=False)


def upgrade() -> None:
    op.create_table(
        "market_cell",
        sa.Column("id", sa.SmallInteger(), sa.Identity(always=True), nullable=False),
        text("condition"),
        text("printing"),
        text("language"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_market_cell")),
    )
    op.create_index(
        "uq_market_cell", "market_cell", ["condition", "printing", "language"], unique=True
    )
    op.create_table(
        "market_look",
        number("product_id"),
        moment("sales_at", nullable=True),
        moment("listings_at", nullable=True),
        sa.PrimaryKeyConstraint("product_id", name=op.f("pk_market_look")),
    )
    op.create_table(
        "market_sale",
        number("product_id"),
        moment("sold_at"),
        cell(),
        number("price"),
        count("quantity"),
        sa.PrimaryKeyConstraint(
            "product_id", "sold_at", "cell", "price", "quantity", name=op.f("pk_market_sale")
        ),
    )
    op.create_table(
        "market_listing",
        number("product_id"),
        moment("observed_at"),
        cell(),
        count("listings"),
        count("copies"),
        number("low"),
        sa.PrimaryKeyConstraint(
            "product_id", "observed_at", "cell", name=op.f("pk_market_listing")
        ),
    )
    op.create_table(
        "market_price",
        number("product_id"),
        text("printing"),
        text("source"),
        moment("observed_at"),
        number("market", nullable=True),
        number("low", nullable=True),
        sa.PrimaryKeyConstraint(
            "product_id", "printing", "source", "observed_at", name=op.f("pk_market_price")
        ),
    )
    connection = op.get_bind().connection.driver_connection
    for table in ("market_cell", "market_look", "market_sale", "market_listing", "market_price"):
        for statement in shared_table(table):
            connection.execute(statement)


def downgrade() -> None:
    for table in ("market_price", "market_listing", "market_sale", "market_look", "market_cell"):
        op.drop_table(table)
