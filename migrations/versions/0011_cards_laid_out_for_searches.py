"""Cards laid out for searches: what a search compares stands first in the row, and an index that
costs next to nothing knows where a seller's rows lie.

The table is written anew, for a column's place can't be changed.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    execute = op.get_bind().exec_driver_sql
    # A table's owner is bound by its policies as well, but for this.
    execute("ALTER TABLE card NO FORCE ROW LEVEL SECURITY")
    op.rename_table("card", "card_before")
    names = [column.name for column in create_card().columns]
    execute(
        f"INSERT INTO card ({', '.join(names)}) SELECT {', '.join(names)} FROM card_before ORDER BY seller_id, id"
    )
    op.drop_table("card_before")
    create_indexes()
    for statement in tenant_table("card"):
        execute(statement)
    execute("ANALYZE card")


def create_card() -> sa.Table:
    """Columns of fixed width that are never null come first, then searched, then shown ones."""

    def number(name: str, **given: object) -> sa.Column:
        return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False, **given)

    def text(name: str, *, nullable: bool = False) -> sa.Column:
        return sa.Column(name, sa.Text(), nullable=nullable)

    def moment(name: str, *, nullable: bool = False) -> sa.Column:
        return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)

    def amount(name: str) -> sa.Column:
        return sa.Column(name, sa.Numeric(12, 4), nullable=True)

    return op.create_table(
        "card",
        *(
            number(name)
            for name in (
                "seller_id",
                "id",
                "marketplace_id",
                "listing_id",
                "product_id",
                "identity_hash",
            )
        ),
        number("values_hash", server_default="0"),
        *(moment(name) for name in ("observed_at", "created_at", "updated_at")),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("gone", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("custom", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("search_text", sa.Text(collation="C"), server_default="", nullable=False),
        text("condition", nullable=True),
        *(text(name) for name in ("printing", "language", "product_line")),
        *(amount(name) for name in ("price", "target_price")),
        sa.Column("number_leading", sa.Integer(), nullable=True),
        moment("priced_at", nullable=True),
        text("match"),
        *(amount(name) for name in ("market", "low", "low_with_shipping", "direct_low")),
        *(
            text(name)
            for name in (
                "product_line_label",
                "set_name",
                "product_name",
                "title",
                "number",
                "rarity",
            )
        ),
        *(text(name) for name in ("condition_label", "photo_url")),
        text("contribution", nullable=True),
        sa.Column("contributed_by", sa.BigInteger(), nullable=True),
        # Pages of a new import are soon told to the index and marked as seen by all, however many
        # cards there are.
        postgresql_with={"fillfactor": "85", "autovacuum_vacuum_insert_scale_factor": "0.02"},
    )


def create_indexes() -> None:
    op.create_primary_key("pk_card", "card", ["seller_id", "id"])
    op.create_index("uq_card_marketplace_id", "card", ["seller_id", "marketplace_id"], unique=True)
    op.create_index(
        "ix_card_custom", "card", ["seller_id", "listing_id"], postgresql_where=sa.text("custom")
    )
    op.create_index(
        "ix_card_contribution",
        "card",
        ["seller_id", "contribution"],
        postgresql_where=sa.text("contribution IS NOT NULL"),
    )
    op.create_index(
        "ix_card_seller",
        "card",
        ["seller_id"],
        postgresql_using="brin",
        postgresql_ops={"seller_id": "int8_minmax_multi_ops"},
        postgresql_with={"pages_per_range": "16"},
    )
