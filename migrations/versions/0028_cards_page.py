"""Tables for the pages of cards: saved searches, columns of choice, the names of a seller's sets,
and matches that the seller settled. Lines of orders are found by their SKU.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import tenant_table

revision = "0028"
down_revision = "0026"


def seller() -> sa.Column:
    return sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False)


def number(name: str) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def texts(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def written(name: str) -> sa.Column:
    return sa.Column(
        name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
    )


SETS = """
    INSERT INTO seller_set (seller_id, set_name)
    SELECT DISTINCT seller_id, set_name FROM card
     WHERE contribution IS NULL AND set_name <> ''
"""


def upgrade() -> None:
    op.create_table(
        "saved_search",
        seller(),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        *texts("name", "name_key", "query"),
        sa.Column("position", sa.Integer(), nullable=False),
        written("created_at"),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_saved_search")),
    )
    op.create_index("uq_saved_search_name", "saved_search", ["seller_id", "name_key"], unique=True)
    op.create_table(
        "card_columns",
        seller(),
        number("member_id"),
        sa.Column("columns", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("seller_id", "member_id", name=op.f("pk_card_columns")),
    )
    op.create_table(
        "seller_set",
        seller(),
        *texts("set_name"),
        sa.PrimaryKeyConstraint("seller_id", "set_name", name=op.f("pk_seller_set")),
    )
    op.create_table(
        "settled_match",
        seller(),
        number("card_id"),
        sa.Column("product_id", sa.BigInteger(), nullable=False),
        sa.Column("was_product_id", sa.BigInteger(), nullable=False),
        *texts("was_match", "settled_by"),
        written("settled_at"),
        sa.PrimaryKeyConstraint("seller_id", "card_id", name=op.f("pk_settled_match")),
    )
    tables = ("saved_search", "card_columns", "seller_set", "settled_match")
    connection = op.get_bind().connection.driver_connection
    connection.execute("ALTER TABLE card NO FORCE ROW LEVEL SECURITY")
    connection.execute(SETS)
    connection.execute("ALTER TABLE card FORCE ROW LEVEL SECURITY")
    for statement in [one for table in tables for one in tenant_table(table)]:
        connection.execute(statement)
    op.drop_index("uq_order_item_sku", "order_item")
    op.create_index(
        "uq_order_item_sku",
        "order_item",
        ["seller_id", "sku_id", "order_id"],
        unique=True,
        postgresql_where=sa.text("sku_id IS NOT NULL"),
    )
