"""Finds the products of an archive in this installation's catalog by their identity; missing
products are found or created as by an upload of the same cards.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog import products
from cardsync.catalog.condition import SEALED
from cardsync.platform.database.copy import new_table, read_rows
from cardsync.platform.database.session import Database


async def known(session: AsyncSession, archived: pl.DataFrame) -> pl.DataFrame:
    """Return the columns `old` and `new`, the IDs in the archive and here, of the products that the
    catalog has.
    """
    asked = archived.select("id", "identity")
    await new_table(session, "asked", asked, {"id": "bigint"}, analyzed=True)
    return await read_rows(
        session,
        "SELECT a.id, coalesce(p.adopted_by, p.id)"
        " FROM asked a JOIN product p ON p.identity = a.identity",
        {"old": pl.Int64, "new": pl.Int64},
    )


async def found(database: Database, session: AsyncSession, archived: pl.DataFrame) -> pl.DataFrame:
    """Return `old`, `new` and `match`, which is null if the catalog has the product. Provisional
    products are created in their own transactions, as those of an upload are.
    """
    here = await known(session, archived)
    lacking = archived.join(here, left_on="id", right_on="old", how="anti").with_row_index("row")
    here = here.with_columns(match=pl.lit(None, pl.String))
    if lacking.is_empty():
        return here
    rows = lacking.select(
        "row",
        pl.col("set_name", "product_name", "number", "rarity", "language").fill_null(""),
        product_line="game",
        condition=pl.when("sealed").then(pl.lit(SEALED)),
        printing=pl.col("finish").fill_null(""),
        title=pl.lit(""),
    )
    made = await products.resolve(database, rows)
    asked = lacking.select("row", old="id").join(made, on="row")
    return pl.concat([here, asked.select("old", "match", new="product_id").select(here.columns)])
