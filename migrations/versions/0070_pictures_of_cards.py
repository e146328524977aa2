"""Pictures of cards: the addresses to fetch, the hosts, and the address that a catalog names."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table, tenant_table

revision = "0070"
down_revision = "0069"


def upgrade() -> None:
    op.add_column("product", sa.Column("picture_url", sa.Text(), nullable=True))
    op.create_table(
        "picture", *fetched(), sa.PrimaryKeyConstraint("address", name=op.f("pk_picture"))
    )
    op.create_table(
        "card_photo",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        *fetched(),
        sa.PrimaryKeyConstraint("seller_id", "address", name=op.f("pk_card_photo")),
    )
    op.create_table(
        "picture_host",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_picture_host")),
    )
    for name, table, columns in (
        ("ix_picture_next", "picture", ["host", "next_at"]),
        ("ix_card_photo_next", "card_photo", ["seller_id", "host", "next_at"]),
    ):
        op.create_index(name, table, columns, postgresql_where=sa.text("next_at IS NOT NULL"))
    statements = [
        *shared_table("picture"),
        *shared_table("picture_host"),
        *tenant_table("card_photo"),
    ]
    for statement in statements:
        op.get_bind().exec_driver_sql(statement)


def fetched() -> tuple[sa.Column, ...]:
    return (
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
    )


def downgrade() -> None:
    for table in ("picture_host", "card_photo", "picture"):
        op.drop_table(table)
    op.drop_column("product", "picture_url")
