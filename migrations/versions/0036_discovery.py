"""Names and sets of the catalog as they are searched, the network's sellers and their offers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cardsync.platform.database.migrate import shared_table

revision = "0036"
down_revision = "0035"

# The words of one name are those of all its products: faces, and variants in brackets.
NAMES = """
    INSERT INTO catalog_name (game, name_key, own, words, printings, provisional)
    SELECT game, name_key, array_to_tsvector(string_to_array(name_key, ' ')),
           array_to_tsvector(array_remove(string_to_array(string_agg(DISTINCT
               concat_ws(' ', name_key, back_key, variant_key), ' '), ' '), '')),
           count(*) FILTER (WHERE NOT provisional), bool_or(provisional)
      FROM product WHERE name_key <> '' GROUP BY game, name_key
"""
SETS = r"""
    INSERT INTO catalog_set (game, set_name, words)
    SELECT DISTINCT game, set_name,
           btrim(regexp_replace(lower(set_name), '[^[:alnum:]]+', ' ', 'g'))
      FROM product
"""

SELLERS = """
    INSERT INTO network_seller (seller_id, exposed, suspended, paid_until, store_name)
    SELECT seller_id, network_consent AND network_published, suspended,
           CASE WHEN plan = 'trial' THEN trial_ends_at
                WHEN plan IN ('paid', 'complimentary', 'founder') THEN NULL ELSE now() END,
           store_name
      FROM account
"""


def text(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.Text(), nullable=nullable)


def moment(name: str) -> sa.Column:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=True)


def upgrade() -> None:
    op.create_table(
        "catalog_name",
        text("game"),
        text("name_key"),
        sa.Column("own", postgresql.TSVECTOR(), nullable=False),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.Column("printings", sa.Integer(), server_default="0", nullable=False),
        sa.Column("provisional", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("game", "name_key", name=op.f("pk_catalog_name")),
    )
    op.create_index("ix_catalog_name_words", "catalog_name", ["words"], postgresql_using="gin")
    op.create_table(
        "catalog_set",
        text("game"),
        text("set_name"),
        text("words"),
        sa.PrimaryKeyConstraint("game", "set_name", name=op.f("pk_catalog_set")),
    )
    op.create_table(
        "catalog_word",
        text("word"),
        sa.PrimaryKeyConstraint("word", name=op.f("pk_catalog_word")),
    )
    op.create_table(
        "catalog_typo",
        text("deleted"),
        text("word"),
        sa.PrimaryKeyConstraint("deleted", "word", name=op.f("pk_catalog_typo")),
    )
    op.create_index("ix_product_name", "product", ["game", "name_key", "number_key"])
    op.create_index(
        "ix_product_provisional_name",
        "product",
        ["game", "name_key"],
        postgresql_where=sa.text("provisional"),
    )
    op.create_table(
        "network_seller",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("exposed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("suspended", sa.Boolean(), server_default=sa.false(), nullable=False),
        moment("paid_until"),
        text("store_name", nullable=True),
        text("listing_url_template", nullable=True),
        text("postage_steps", nullable=True),
        moment("refreshed_at"),
        sa.PrimaryKeyConstraint("seller_id", name=op.f("pk_network_seller")),
    )
    op.create_table(
        "network_offer",
        sa.Column("product_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        text("condition"),
        sa.Column("price", sa.Numeric(12, 4), nullable=True),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(
            "product_id", "seller_id", "condition", name=op.f("pk_network_offer")
        ),
    )
    op.create_index("ix_network_offer_seller", "network_offer", ["seller_id"])
    for column in (
        moment("network_consented_at"),
        moment("network_published_at"),
        text("listing_url_template", nullable=True),
        text("postage_steps", nullable=True),
    ):
        op.add_column("account", column)
    connection = op.get_bind().connection.driver_connection
    shared = ("catalog_name", "catalog_set", "catalog_word", "catalog_typo")
    for table in (*shared, "network_seller", "network_offer"):
        for statement in shared_table(table):
            connection.execute(statement)
    connection.execute(NAMES)
    connection.execute(SETS)
    connection.execute(SELLERS)
    connection.execute(
        "INSERT INTO work_due (seller_id, stream, due_at) SELECT seller_id, 'network', now()"
        " FROM account ON CONFLICT DO NOTHING"
    )


def downgrade() -> None:
    for column in (
        "network_consented_at",
        "network_published_at",
        "listing_url_template",
        "postage_steps",
    ):
        op.drop_column("account", column)
    op.drop_index("ix_product_provisional_name", "product")
    op.drop_index("ix_product_name", "product")
    for table in (
        "network_offer",
        "network_seller",
        "catalog_typo",
        "catalog_word",
        "catalog_set",
        "catalog_name",
    ):
        op.drop_table(table)
