"""Catalogs are installed from their sources, and renewed."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0091"
down_revision = "0090"


def moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=True)


def count(name: str, kind: type[sa.Integer] = sa.BigInteger) -> sa.Column[int]:
    return sa.Column(name, kind(), server_default="0", nullable=False)


def upgrade() -> None:
    op.create_table(
        "catalog_install",
        sa.Column("game", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        moment("asked_at"),
        sa.Column("holder", sa.Text(), nullable=True),
        moment("held_until"),
        sa.Column("step", sa.Text(), server_default="", nullable=False),
        count("done"),
        count("total"),
        moment("installed_at"),
        moment("checked_at"),
        sa.Column("digest", sa.Text(), nullable=True),
        count("rows"),
        count("skipped"),
        count("bytes"),
        moment("failed_at"),
        sa.Column("failure", sa.Text(), nullable=True),
        count("failures", sa.Integer),
        moment("next_at"),
        sa.PrimaryKeyConstraint("game", "source", name=op.f("pk_catalog_install")),
    )
    for statement in shared_table("catalog_install"):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    op.drop_table("catalog_install")
