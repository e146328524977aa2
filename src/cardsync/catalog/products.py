"""Products for inventory rows: keyed rows in, a product and how it was found out. What the catalog lacks becomes a provisional one.

Two sellers with the same unknown card share its provisional product; a custom listing's title never enters it.
"""

from __future__ import annotations

import asyncio

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.match import CATALOG_KEYS, match, row_keys
from cardsync.db import Database, copy_chunks, copy_in, encode, frame_of

# What `resolve` needs of each row, beside `row` and `title`.
ROW_COLUMNS = ("product_line", "set_name", "product_name", "number", "rarity", "condition", "printing", "language")

_IDENTITY = (
    "game",
    "set_key",
    "name_key",
    "back_key",
    "variant_key",
    "number_key",
    "number_total",
    "finish_key",
    "language_key",
)
_TEXTS = ("game", "set_name", "product_name", "number", "rarity", "finish", "language")
_CHUNK = 20_000


async def resolve(database: Database, rows: pl.DataFrame) -> pl.DataFrame:
    """`row`, `product_id` and `match` (matched, ambiguous or provisional) for every row given."""
    keyed = await asyncio.to_thread(_keyed, rows)
    async with database.shared() as session:
        offered = await _offered(session, keyed)
    found = await asyncio.to_thread(match, keyed, offered)
    left = keyed.join(found.filter(pl.col("product_id").is_null()).select("row", "outcome"), on="row")
    known = found.filter(pl.col("product_id").is_not_null()).select("row", "product_id", match="outcome")
    if left.is_empty():
        return known
    made = await provisional(database, left)
    return pl.concat([known, made.select(pl.col("row"), pl.col("product_id"), pl.col("match"))])


def _keyed(rows: pl.DataFrame) -> pl.DataFrame:
    # A custom listing is named "<catalog name>: <title>".
    suffix = pl.concat_str(pl.lit(": "), "title")
    plain = (
        pl.when(pl.col("title") != "").then(pl.col("product_name").str.strip_suffix(suffix)).otherwise("product_name")
    )
    return row_keys(rows.with_columns(plain.alias("product_name")).drop("title").rename({"product_line": "game"}))


async def _offered(session: AsyncSession, keyed: pl.DataFrame) -> pl.DataFrame:
    """The part of the catalog whose sets occur in the rows."""
    wanted = pl.concat(
        [
            keyed.select("game", key="set_key"),
            keyed.select("game", key="set_series"),
        ]
    ).drop_nulls()
    wanted = wanted.unique().sort("game", "key")
    await session.execute(text("CREATE TEMP TABLE wanted (game text, key text) ON COMMIT DROP"))
    await copy_in(session, "wanted", ("game", "key"), encode(wanted))
    columns = ", ".join(f"p.{name}" for name in ("id", "marketplace_product_id", "game", *CATALOG_KEYS))
    data = await copy_chunks(
        session,
        f"""SELECT {columns} FROM product p WHERE NOT provisional AND
            ((game, set_key) IN (SELECT game, key FROM wanted) OR (game, set_code_key) IN (SELECT game, key FROM wanted))""",
    )
    return _products(data)


def _products(data: bytes) -> pl.DataFrame:
    schema = {"id": pl.Int64, "marketplace_product_id": pl.Int64, "game": pl.String, **CATALOG_KEYS}
    read = {name: pl.String if kind == pl.Boolean else kind for name, kind in schema.items()}
    return frame_of(data, read).with_columns(sealed=pl.col("sealed") == "t")


def identity() -> pl.Expr:
    """One text per distinct product; loading or uploading the same again finds it. Kept as its MD5, which fits any index."""
    return pl.concat_str([pl.col(name).fill_null("") for name in _IDENTITY], separator="\x1f")


async def provisional(database: Database, rows: pl.DataFrame) -> pl.DataFrame:
    """Make, or find again, a product from each row itself. Adds `product_id` and `match`."""
    rows = rows.with_columns(
        identity=pl.concat_str(pl.lit("row\x1f"), identity()),
        finish="printing",
        match=pl.when(pl.col("outcome") == "ambiguous").then(pl.lit("ambiguous")).otherwise(pl.lit("provisional")),
    )
    keys = [name for name in CATALOG_KEYS if name != "set_code_key"]
    columns = ("identity", *_TEXTS, *keys)
    # Sorted: two sellers making the same products at once wait for each other instead of deadlocking.
    distinct = rows.unique("identity", keep="first", maintain_order=True).select(columns).sort("identity")
    found = [
        await _provisional_chunk(database, distinct.slice(at, _CHUNK), columns)
        for at in range(0, distinct.height, _CHUNK)
    ]
    ids = pl.concat(found)
    return rows.join(ids, on="identity", how="left", maintain_order="left")


async def _provisional_chunk(database: Database, rows: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    listed = ", ".join(columns[1:])
    types = ", ".join(f"{name} {'boolean' if name == 'sealed' else 'text'}" for name in columns)
    rows = rows.with_row_index("n")
    async with database.shared() as session:
        await session.execute(text(f"CREATE TEMP TABLE incoming (n integer, {types}) ON COMMIT DROP"))
        await copy_in(session, "incoming", ("n", *columns), await asyncio.to_thread(encode, rows))
        await session.execute(
            text(f"""
                INSERT INTO product (identity, {listed}, provisional)
                SELECT md5(identity), {listed}, true FROM incoming ORDER BY n
                ON CONFLICT (identity) DO NOTHING
            """)
        )
        data = await copy_chunks(
            session,
            "SELECT i.n, coalesce(p.adopted_by, p.id) FROM incoming i JOIN product p ON p.identity = md5(i.identity)",
        )
    ids = frame_of(data, {"n": pl.UInt32, "product_id": pl.Int64})
    return rows.join(ids, on="n", how="left").select("identity", "product_id")


async def adopted(database: Database, product_ids: list[int]) -> pl.DataFrame:
    """Of provisional products that cards point to, those that a catalog has taken over: product_id_old, adopted_id."""
    async with database.shared() as session:
        rows = await session.execute(
            text("""
                SELECT id, coalesce(adopted_by, id) FROM product
                 WHERE id = ANY(CAST(:ids AS bigint[])) AND (NOT provisional OR adopted_by IS NOT NULL)
            """),
            {"ids": product_ids},
        )
        pairs = [tuple(row) for row in rows]
    return pl.DataFrame(pairs, schema={"product_id_old": pl.Int64, "adopted_id": pl.Int64}, orient="row")
