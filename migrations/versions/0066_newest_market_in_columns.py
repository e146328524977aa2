"""The newest of each product's market in plain columns, one row for each cell, instead of packed
integers; whether a supply fell stands beside the clocks.
"""

import sqlalchemy as sa
from alembic import op

from cardsync.platform.database.migrate import shared_table

revision = "0066"
down_revision = "0065"

# A record has eight bigints, and the first record of a row tells of the product itself.
RECORD_BYTES = 64
UNPACKED = """
    INSERT INTO market_newest (product_id, cell, low, listings, median, sales, sales_week,
                               newest_sold_at)
    SELECT product_id, {1}, nullif({2}, 0), {3}, nullif({4}, 0), {5}, {6},
           'epoch'::timestamptz + nullif({7}, 0) * interval '1 microsecond'
      FROM packed_newest CROSS JOIN generate_series(1, length(packed) / 64 - 1) AS r
"""
FELL = """
    UPDATE market_look k SET fell = get_byte(p.packed, 39) = 1
      FROM packed_newest p WHERE p.product_id = k.product_id
"""


def number(place: int) -> str:
    at = f"substr(packed, r * {RECORD_BYTES} + {8 * place + 1}, 8)"
    return f"('x' || encode({at}, 'hex'))::bit(64)::bigint"


def packed(*numbers: str) -> str:
    return " || ".join(f"int8send(({number})::bigint)" for number in numbers)


def microseconds(column: str) -> str:
    return f"coalesce(date_part('epoch', {column}) * 1000000, 0)"


CELL = packed(
    "product_id", "cell", "coalesce(low, 0)", "listings", "coalesce(median, 0)", "sales",
    "sales_week", microseconds("newest_sold_at"),
)  # fmt: skip
LOOK = packed(
    "k.product_id", "0", microseconds("k.sales_at"), microseconds("k.listings_at"),
    "k.fell::integer", "0", "0", "0",
)  # fmt: skip
PACKED = f"""
    INSERT INTO market_newest (product_id, packed)
    SELECT k.product_id, {LOOK} || coalesce(c.packed, ''::bytea)
      FROM market_look k
      LEFT JOIN (SELECT product_id, string_agg({CELL}, ''::bytea ORDER BY cell) AS packed
                   FROM plain_newest GROUP BY product_id) c ON c.product_id = k.product_id
     WHERE k.fell IS NOT NULL
"""


def _created(*columns: sa.Column, key: tuple[str, ...]) -> None:
    op.create_table(
        "market_newest",
        sa.Column("product_id", sa.BigInteger(), autoincrement=False, nullable=False),
        *columns,
        sa.PrimaryKeyConstraint(*key, name=op.f("pk_market_newest")),
    )
    connection = op.get_bind().connection.driver_connection
    for statement in shared_table("market_newest"):
        connection.execute(statement)


def upgrade() -> None:
    op.execute("CREATE TEMP TABLE packed_newest ON COMMIT DROP AS SELECT * FROM market_newest")
    op.drop_table("market_newest")
    _created(
        sa.Column("cell", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("low", sa.BigInteger()),
        sa.Column("listings", sa.Integer(), nullable=False),
        sa.Column("median", sa.BigInteger()),
        sa.Column("sales", sa.Integer(), nullable=False),
        sa.Column("sales_week", sa.Integer(), nullable=False),
        sa.Column("newest_sold_at", sa.DateTime(timezone=True)),
        key=("product_id", "cell"),
    )
    op.add_column("market_look", sa.Column("fell", sa.Boolean()))
    connection = op.get_bind().connection.driver_connection
    connection.execute(UNPACKED.format(*map(number, range(8))))
    connection.execute(FELL)


def downgrade() -> None:
    op.execute("CREATE TEMP TABLE plain_newest ON COMMIT DROP AS SELECT * FROM market_newest")
    op.drop_table("market_newest")
    _created(sa.Column("packed", sa.LargeBinary(), nullable=False), key=("product_id",))
    op.get_bind().connection.driver_connection.execute(PACKED)
    op.drop_column("market_look", "fell")
