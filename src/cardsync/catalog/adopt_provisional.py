"""Turns provisional products into products of a catalog that now contains them: the catalog adopts
them. Cards and pictures refer to the product's id, so they need no change here.
"""

from __future__ import annotations

import asyncio

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog import name_index
from cardsync.catalog.incoming_products import (
    CHUNK,
    INCOMING,
    STORED,
    TYPES,
)
from cardsync.catalog.match import match, row_keys
from cardsync.platform.database.copy import new_table, read_rows
from cardsync.platform.database.session import Database

PROVISIONAL = ("id", "game", "set_name", "product_name", "number", "rarity", "finish", "language")


async def adopt(database: Database, keyed: pl.DataFrame) -> int:
    """Turn each provisional product that matches exactly one catalog row into the product of that
    row. The product keeps its id. Return the number of these products.
    """
    games = sorted(keyed["game"].unique().to_list())
    async with database.shared() as session:
        rows = await read_rows(
            session,
            f"SELECT {', '.join(PROVISIONAL)}, sealed FROM product"
            " WHERE provisional AND adopted_by IS NULL AND game = ANY (:games) ORDER BY id",
            {"id": pl.Int64, **dict.fromkeys(PROVISIONAL[1:], pl.String), "sealed": pl.String},
            {"games": games},
        )
    if rows.is_empty():
        return 0
    found = await asyncio.to_thread(_matches, rows, keyed)
    for at in range(0, found.height, CHUNK):
        async with database.shared() as session:
            await _take_over(session, found.slice(at, CHUNK))
    return found.height


def _matches(rows: pl.DataFrame, keyed: pl.DataFrame) -> pl.DataFrame:
    """Return each provisional product (`old_id`) that matches exactly one catalog row, with that
    row.
    """
    condition = pl.when(pl.col("sealed") == "t").then(pl.lit("U"))
    asked = row_keys(
        rows.with_columns(condition=condition, printing=pl.col("finish").fill_null("")).drop(
            "sealed"
        )
    ).with_row_index("row")
    offered = keyed.with_row_index("id").with_columns(pl.col("id").cast(pl.Int64))
    hits = match(asked, offered).filter(pl.col("outcome") == "matched")
    pairs = hits.join(asked.select("row", old_id="id"), on="row").select("old_id", id="product_id")
    return pairs.join(offered, on="id").drop("id").sort("old_id")


async def _take_over(session: AsyncSession, found: pl.DataFrame) -> None:
    # If one row describes several provisional products, the first becomes the product, and
    # `adopted_by` of the others refers to it. If the product exists, `adopted_by` of all does.
    found = found.with_columns(first=pl.col("identity").is_first_distinct())
    types = {"old_id": "bigint", "first": "boolean", **TYPES}
    await new_table(session, "incoming", found, types)
    sets = ", ".join(f"{name} = i.{name}" for name in STORED)
    await session.execute(
        text(f"""
            UPDATE product p SET {sets}, identity = md5(i.identity), provisional = false
              FROM {INCOMING} i
             WHERE i.first AND p.id = i.old_id
               AND NOT EXISTS (SELECT FROM product q WHERE q.identity = md5(i.identity))
        """)
    )
    await session.execute(
        text(f"""
            UPDATE product p SET adopted_by = q.id FROM {INCOMING} i, product q
             WHERE p.id = i.old_id AND p.provisional AND q.identity = md5(i.identity)
        """)
    )
    await name_index.renew(session, found)
