"""Columns that cards are searched by; lists of cards; places on the shelves."""

import polars as pl
import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table
from cardsync.stock.search.folding import search_columns

revision = "0007"
down_revision = "0006"

TEXTS = ("product_name", "set_name", "rarity", "number")


def upgrade() -> None:
    op.add_column(
        "card", sa.Column("search_text", sa.Text(collation="C"), server_default="", nullable=False)
    )
    op.add_column("card", sa.Column("number_leading", sa.Integer(), nullable=True))
    fill()
    op.create_index(
        "ix_product_code",
        "product",
        [sa.literal_column("lower(set_code)")],
        postgresql_where=sa.text("set_code IS NOT NULL"),
    )
    create_tables()
    for table in ("card_list", "card_list_entry", "card_location"):
        for statement in tenant_table(table):
            op.execute(statement)


def fill() -> None:
    """Fills the columns of the cards that are there already."""
    connection = op.get_bind()
    names = ", ".join(TEXTS)
    known = connection.exec_driver_sql(f"SELECT DISTINCT {names} FROM card").fetchall()
    rows = pl.DataFrame(
        [tuple(row) for row in known], schema=dict.fromkeys(TEXTS, pl.String), orient="row"
    )
    made = rows.hstack(search_columns(rows))
    if made.is_empty():
        return
    same = " AND ".join(f"card.{name} = made.{name}" for name in TEXTS)
    arrays = ", ".join(f"CAST(:{name} AS text[])" for name in (*TEXTS, "search_text"))
    connection.execute(
        sa.text(
            f"UPDATE card SET search_text = made.search_text, number_leading = made.number_leading"
            f" FROM unnest({arrays}, CAST(:number_leading AS integer[])) AS made ({names}, search_text, number_leading) WHERE {same}"
        ),
        made.to_dict(as_series=False),
    )


def create_tables() -> None:
    op.create_table(
        "card_list",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_card_list")),
    )
    op.create_index("uq_card_list_slug", "card_list", ["seller_id", "slug"], unique=True)
    op.create_index(
        "uq_card_list_name",
        "card_list",
        ["seller_id", "name_key"],
        unique=True,
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "card_list_entry",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("list_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "added_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["seller_id", "list_id"],
            ["card_list.seller_id", "card_list.id"],
            name=op.f("fk_card_list_entry_seller_id_list_id"),
        ),
        sa.PrimaryKeyConstraint("seller_id", "list_id", "card_id", name=op.f("pk_card_list_entry")),
    )
    op.create_index("ix_card_list_entry_card", "card_list_entry", ["seller_id", "card_id"])
    op.create_table(
        "card_location",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("card_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("box", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.CheckConstraint("box >= 1 AND slot >= 1", name=op.f("ck_card_location_place")),
        sa.CheckConstraint("quantity >= 1", name=op.f("ck_card_location_quantity")),
        sa.PrimaryKeyConstraint(
            "seller_id", "card_id", "box", "slot", name=op.f("pk_card_location")
        ),
    )
    op.create_index("ix_card_location_slot", "card_location", ["seller_id", "box", "slot"])
