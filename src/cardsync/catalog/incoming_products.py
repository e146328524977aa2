"""Computes the keys of a catalog's products and writes them into the table of incoming rows."""

from __future__ import annotations

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.match import CATALOG_KEYS, catalog_keys
from cardsync.catalog.products import identity
from cardsync.catalog.sources.own import COLUMNS
from cardsync.catalog.sources.source_record import IDS
from cardsync.platform.database.copy import new_table

CHUNK = 50_000
STORED = (
    "game",
    "set_name",
    "set_code",
    "product_name",
    "number",
    "rarity",
    "finish",
    "language",
    "marketplace_product_id",
    "picture_url",
    *CATALOG_KEYS,
)
# On Citus, a subquery sends the rows to the nodes with `product`, which do not have the temp table.
INCOMING = "(SELECT * FROM incoming)"
TYPES = {"marketplace_product_id": "bigint", "sealed": "boolean"}
# These columns describe a printing and do not distinguish it from another.
BESIDE = ("rarity", "product_id", "picture_url", *IDS)
# The addresses of Scryfall's pictures contain Scryfall's ids.
_IN_PICTURE = r"scryfall\.io/.*([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"


def key_products(frame: pl.DataFrame) -> pl.DataFrame:
    keyed = catalog_keys(frame).rename({"product_id": "marketplace_product_id"})
    # The identity includes the texts, not only the keys, so that two spellings are two products
    # unless `load_catalog` finds that they are the same printing.
    own = pl.concat_str(
        [pl.col(name).fill_null("") for name in COLUMNS if name not in BESIDE], separator="\x1f"
    )
    keyed = keyed.with_columns(
        scryfall_id=pl.coalesce("scryfall_id", pl.col("picture_url").str.extract(_IN_PICTURE, 1)),
        identity=pl.concat_str(
            pl.lit("catalog\x1f"),
            own,
            pl.lit("\x1f"),
            identity(),
        ),
    )
    return (
        keyed.unique("identity", keep="first", maintain_order=True)
        .sort("identity")
        .select("identity", *STORED, *IDS)
    )


async def put_incoming(session: AsyncSession, rows: pl.DataFrame) -> None:
    await new_table(session, "incoming", rows, TYPES, analyzed=True)
