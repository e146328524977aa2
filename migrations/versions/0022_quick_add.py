"""Quick-add: drafts that become listings, and the catalog found by the beginnings of words.

`catalog_words` splits a product's name, set code and number into words; the index over it answers
the type-ahead.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from cardsync.platform.database.migrate import tenant_table

revision = "0022"
down_revision = "0021"

CATALOG_WORDS = r"""
CREATE FUNCTION catalog_words(name text, code text, number text, number_key text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_to_tsvector(array_remove(regexp_split_to_array(
        translate(lower(concat_ws(' ', name, code, number, number_key)),
                  'áàâäãåéèêëíìîïóòôöõúùûüñç’''', 'aaaaaaeeeeiiiiooooouuuunc'),
        '[][\s!"#$%&()*+,./:;<=>?@\\^_`{|}~-]+'), ''))
$$
"""


def text(name: str, *, nullable: bool = False, default: str | None = None) -> sa.Column:
    return sa.Column(name, sa.Text(), server_default=default, nullable=nullable)


def moment(name: str, *, nullable: bool = True) -> sa.Column:
    default = None if nullable else sa.text("now()")
    return sa.Column(name, sa.DateTime(timezone=True), server_default=default, nullable=nullable)


def upgrade() -> None:
    # The cards that the marketplace refused out of an imported file, and those that the agent has
    # paused after three refusals.
    op.add_column("repricing_event", sa.Column("rejected", JSONB(), nullable=True))
    op.add_column("repricing_event", sa.Column("paused", JSONB(), nullable=True))
    op.create_table(
        "quick_add",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        text("status", default="draft"),
        sa.Column("product_id", sa.BigInteger(), nullable=False),
        sa.Column("listing_id", sa.BigInteger(), nullable=True),
        *(text(name) for name in ("product_line", "product_line_label", "set_name")),
        *(text(name) for name in ("product_name", "number", "rarity", "condition")),
        *(text(name) for name in ("condition_label", "printing", "language")),
        text("title", default=""),
        text("photo_url", default=""),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("price", sa.Numeric(12, 4), nullable=True),
        sa.Column("cost", sa.Numeric(12, 4), nullable=True),
        text("source", default=""),
        sa.Column("box", sa.Integer(), nullable=True),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("contribution_id", sa.BigInteger(), nullable=True),
        sa.Column("served", sa.Integer(), server_default="0", nullable=False),
        moment("served_at"),
        text("file_sha256", nullable=True),
        sa.Column("quantity_before", sa.Integer(), nullable=True),
        text("reason", nullable=True),
        text("settled_by", nullable=True),
        sa.Column("card_id", sa.BigInteger(), nullable=True),
        text("created_by"),
        moment("created_at", nullable=False),
        moment("updated_at", nullable=False),
        moment("published_at"),
        moment("settled_at"),
        sa.CheckConstraint(
            "status IN ('draft', 'published', 'pending', 'listed', 'rejected')",
            name=op.f("ck_quick_add_status"),
        ),
        sa.CheckConstraint("quantity >= 1", name=op.f("ck_quick_add_quantity")),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_quick_add")),
    )
    op.create_index(
        "ix_quick_add_open",
        "quick_add",
        ["seller_id", "id"],
        postgresql_where=sa.text(
            "status IN ('published', 'pending') OR (status = 'listed' AND card_id IS NULL)"
        ),
    )
    op.create_index(
        "ix_quick_add_listed",
        "quick_add",
        ["seller_id", "product_id"],
        postgresql_where=sa.text("status = 'listed'"),
    )
    op.create_index(
        "uq_quick_add_contribution",
        "quick_add",
        ["seller_id", "contribution_id"],
        unique=True,
        postgresql_where=sa.text("contribution_id IS NOT NULL AND status <> 'listed'"),
    )
    for statement in tenant_table("quick_add"):
        op.get_bind().connection.driver_connection.execute(statement)
    op.add_column(
        "sync_state",
        sa.Column("quick_add_waits", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.get_bind().connection.driver_connection.execute(CATALOG_WORDS)
    op.create_index(
        "ix_product_words",
        "product",
        [sa.text("catalog_words(product_name, set_code, number, number_key)")],
        postgresql_using="gin",
        postgresql_where=sa.text("NOT provisional"),
    )
