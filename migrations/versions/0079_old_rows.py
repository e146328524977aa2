"""Old rows move into files of the object store; a month of price history goes when it is empty."""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import tenant_table

revision = "0079"
down_revision = "0078"

# Row-level security may hide the rows from the owner, too: it is lifted for the look, which nobody
# else has meanwhile. All who use the history wait behind this: a month in use has its turn an hour
# later.
DROP_PARTITIONS = """
CREATE OR REPLACE FUNCTION drop_price_observation_partitions(before date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp{limit} AS $$
DECLARE
    part record;
{declare}    dropped integer := 0;
BEGIN
    -- Nobody loses history younger than a month by a wrong argument.
    IF before > current_date - 31 THEN RAISE EXCEPTION 'history younger than a month is not dropped'; END IF;
    FOR part IN SELECT c.oid::regclass AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                 WHERE i.inhparent = 'price_observation'::regclass
                   AND c.relname < 'price_observation_' || to_char(date_trunc('month', before), 'YYYYMM')
    LOOP
{drop}
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$
"""
DROP = "        EXECUTE format('DROP TABLE %s', part.name);"
DROP_EMPTY = """
        BEGIN
            EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', part.name);
            EXECUTE format('SELECT EXISTS (SELECT FROM %s)', part.name) INTO holds;
            EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', part.name);
            CONTINUE WHEN holds;
            EXECUTE format('DROP TABLE %s', part.name);
        EXCEPTION WHEN lock_not_available THEN
            CONTINUE;
        END;"""


def drop_partitions(limit: str = "", declare: str = "", drop: str = DROP) -> str:
    made = DROP_PARTITIONS.replace("{limit}", limit).replace("{declare}", declare)
    return made.replace("{drop}", drop)


def upgrade() -> None:
    op.create_table(
        "old_rows",
        sa.Column("seller_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("month", sa.DateTime(timezone=True), nullable=False),
        sa.Column("storage_key", sa.Text(), nullable=False),
        sa.Column("rows", sa.Integer(), server_default="0", nullable=False),
        sa.Column("first_key", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_key", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "made_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("seller_id", "id", name=op.f("pk_old_rows")),
        sa.ForeignKeyConstraint(
            ["seller_id"], ["account.seller_id"], name=op.f("fk_old_rows_seller_id_account")
        ),
    )
    op.create_index("ix_old_rows_month", "old_rows", ["seller_id", "kind", "month"])
    op.create_index(
        "uq_old_rows_written",
        "old_rows",
        ["seller_id", "kind"],
        unique=True,
        postgresql_where=sa.text("kept_at IS NULL"),
    )
    for statement in tenant_table("old_rows"):
        op.get_bind().exec_driver_sql(statement)
    limited = drop_partitions(" SET lock_timeout = '2s'", "    holds boolean;\n", DROP_EMPTY)
    op.execute(limited)


def downgrade() -> None:
    # Rows that have moved stay in the object store.
    op.execute(drop_partitions())
    op.drop_table("old_rows")
