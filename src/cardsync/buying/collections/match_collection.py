"""Finds the product of each row of a collection: by SKU, by the marketplace's or Scryfall's id, by
set and number, and last by name. Nothing is guessed: a row that fits several products has none.

The catalog's matcher judges sets, numbers and names; no provisional product is made of a
customer's row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.buying.collections.offered_products import Offered, offered_products
from cardsync.catalog.match import match, row_keys
from cardsync.database.copy import copy_chunks, copy_in, encode, frame_of, with_values
from cardsync.database.session import Database

_OF_SKUS: Final = """
    SELECT c.marketplace_id, c.product_id, c.condition, c.printing, c.language
      FROM card c JOIN product p ON p.id = c.product_id AND NOT p.provisional
     WHERE c.seller_id = :seller AND c.marketplace_id IN (SELECT sku FROM wanted_sku)
"""
_SKU_SCHEMA: Final[dict[str, Any]] = {
    "sku": pl.Int64,
    "product_id": pl.Int64,
    "of_condition": pl.String,
    "of_finish": pl.String,
    "of_language": pl.String,
}
FOUND: Final[dict[str, Any]] = {
    "row": pl.Int64,
    "product_id": pl.Int64,
    "certainty": pl.String,
    "how": pl.String,
}


async def match_rows(
    database: Database,
    seller_id: int,
    games: Sequence[str],
    rows: pl.DataFrame,
) -> pl.DataFrame:
    """Return the rows with `product_id`, `certainty` and `how`, and with the game of the product
    that was found; `games` are the account's, for rows that name none.
    """
    keyed = await asyncio.to_thread(
        keyed_lines,
        rows,
        games,
    )
    offered = await offered_products(database, keyed)
    found = await asyncio.to_thread(
        _found,
        keyed,
        offered,
    )
    skus = await _of_skus(
        database,
        seller_id,
        rows,
    )
    return await asyncio.to_thread(
        _joined,
        rows,
        found,
        skus,
    )


def keyed_lines(rows: pl.DataFrame, games: Sequence[str]) -> pl.DataFrame:
    """Return a line for each row and game that it may be of, with the matcher's keys; `row` is the
    number of the line, `of_row` the row's.
    """
    several = rows.with_columns(
        pl.when(pl.col("game") == "")
        .then(pl.lit(list(games), pl.List(pl.String)))
        .otherwise(pl.concat_list("game"))
        .alias("game")
    ).explode("game")
    lines = several.drop_nulls("game").rename(
        {"row": "of_row", "name": "product_name", "finish": "printing"}
    )
    keyed = row_keys(lines.with_columns(rarity=pl.lit("")))
    code = pl.when(pl.col("set_code") != "").then(pl.col("set_code").str.to_lowercase())
    return keyed.with_columns(code=code).with_row_index("row")


def _with_sets(keyed: pl.DataFrame, catalog: pl.DataFrame) -> pl.DataFrame:
    """Give each line the set of its code where the catalog lacks the set's name, if the code belongs
    to one set alone. `has_set` says whether the line names a set.
    """
    coded = (
        catalog.drop_nulls("code")
        .group_by("game", "code")
        .agg(pl.col("set_key").unique().alias("sets"))
        .filter(pl.col("sets").list.len() == 1)
        .select("game", "code", coded=pl.col("sets").list.first())
    )
    named = catalog.select(
        "game",
        "set_key",
        named=pl.lit(True),
    ).unique()
    known = keyed.join(
        coded,
        on=["game", "code"],
        how="left",
        maintain_order="left",
    ).join(named, on=["game", "set_key"], how="left", maintain_order="left")
    by_name = (pl.col("set_name") != "") & pl.col("named").fill_null(False)
    return known.with_columns(
        set_key=pl.when(by_name).then("set_key").otherwise(pl.coalesce("coded", "set_key")),
        has_set=(pl.col("set_name") != "") | pl.col("code").is_not_null(),
    )


def _found(keyed: pl.DataFrame, offered: Offered) -> pl.DataFrame:
    """Return the product of each line that has one, and the ties, the surest first."""
    catalog, with_ids = offered
    keyed = _with_sets(keyed, catalog)
    has_set = pl.col("has_set")
    by_ids = [
        _by_id(
            keyed,
            with_ids,
            "scryfall_id",
            "scryfall_id",
            "scryfall_id",
        ),
        _by_id(
            keyed,
            with_ids,
            "listing_id",
            "marketplace_product_id",
            "product_id",
        ),
    ]
    hits = match(keyed, catalog).with_columns(pl.col("row").cast(pl.UInt32))
    lines = keyed.select(
        "row",
        "of_row",
        "number_key",
        "has_set",
    )
    matched = (
        hits.filter(pl.col("outcome") != "unmatched")
        .join(lines, on="row")
        .select(
            "of_row",
            "product_id",
            certainty=_certainty(),
            how=pl.lit("set_and_number"),
        )
    )
    return pl.concat([*by_ids, matched, _by_name(keyed.filter(~has_set), catalog)])


def _certainty() -> pl.Expr:
    tied = pl.col("product_id").is_null()
    without = (pl.col("number_key") == "") | ~pl.col("has_set")
    return (
        pl.when(tied)
        .then(pl.lit("possible"))
        .when(without)
        .then(pl.lit("probable"))
        .otherwise(pl.lit("certain"))
    )


def _by_id(
    keyed: pl.DataFrame,
    catalog: pl.DataFrame,
    ours: str,
    theirs: str,
    how: str,
) -> pl.DataFrame:
    """Return the lines whose id belongs to one product in the line's finish."""
    known = catalog.drop_nulls(theirs).select(
        "id", "game", "finish_key", pl.col(theirs).alias(ours)
    )
    lines = keyed.select(
        "of_row",
        "game",
        ours,
        finish_own="finish_key",
    )
    pairs = lines.join(known, on=["game", ours])
    fits = pl.col("finish_key").is_null() | (pl.col("finish_key") == pl.col("finish_own"))
    exact = pairs.filter(fits).unique(["of_row", "id"])
    sole = exact.filter(pl.col("of_row").is_unique())
    return sole.select(
        "of_row",
        product_id="id",
        certainty=pl.lit("certain"),
        how=pl.lit(how),
    )


def _by_name(lines: pl.DataFrame, catalog: pl.DataFrame) -> pl.DataFrame:
    """Return the lines without a set: a name that one product has is its, several are a tie."""
    known = catalog.select(
        "id",
        "game",
        "name_key",
        finish="finish_key",
        spoken="language_key",
    )
    pairs = lines.select(
        "of_row",
        "game",
        "name_key",
        "finish_key",
        "language_key",
    ).join(known, on=["game", "name_key"])
    fits = (pl.col("finish").is_null() | (pl.col("finish") == pl.col("finish_key"))) & (
        pl.col("spoken").is_null() | (pl.col("spoken") == pl.col("language_key"))
    )
    several = pairs.filter(fits).group_by("of_row", maintain_order=True)
    ids = several.agg(pl.col("id").unique().alias("ids"))
    sole = pl.col("ids").list.len() == 1
    return ids.select(
        "of_row",
        product_id=pl.when(sole).then(pl.col("ids").list.first()),
        certainty=pl.when(sole).then(pl.lit("probable")).otherwise(pl.lit("possible")),
        how=pl.lit("name"),
    )


async def _of_skus(database: Database, seller_id: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the shop's own cards with the rows' SKUs."""
    wanted = rows.select("sku").drop_nulls().unique()
    if wanted.is_empty():
        return pl.DataFrame(schema=_SKU_SCHEMA)
    async with database.tenant(seller_id) as session:
        return await _read_skus(
            session,
            seller_id,
            wanted,
        )


async def _read_skus(
    session: AsyncSession,
    seller_id: int,
    wanted: pl.DataFrame,
) -> pl.DataFrame:
    await session.execute(text("CREATE TEMP TABLE wanted_sku (sku bigint) ON COMMIT DROP"))
    await copy_in(
        session,
        "wanted_sku",
        wanted.columns,
        encode(wanted),
    )
    data = await copy_chunks(
        session,
        await with_values(
            session,
            _OF_SKUS,
            {"seller": seller_id},
        ),
    )
    return await asyncio.to_thread(
        frame_of,
        data,
        _SKU_SCHEMA,
    )


def _joined(rows: pl.DataFrame, found: pl.DataFrame, skus: pl.DataFrame) -> pl.DataFrame:
    """Give each row its surest finding: an id before set and number, both before a name. Findings
    of one kind that name different products are a tie.
    """
    first = found.with_columns(
        pl.col("how").replace_strict(_ORDER, return_dtype=pl.Int8).alias("order")
    ).filter(pl.col("order") == pl.col("order").min().over("of_row"))
    one = first.group_by("of_row").agg(
        pl.col("product_id").drop_nulls().unique().alias("ids"),
        pl.col("certainty").first(),
        pl.col("how").first(),
    )
    sole = pl.col("ids").list.len() == 1
    best = one.select(
        row="of_row",
        product_id=pl.when(sole).then(pl.col("ids").list.first()),
        certainty=pl.when(sole).then("certainty").otherwise(pl.lit("possible")),
        how="how",
    )
    with_sku = rows.join(
        skus.rename({"product_id": "of_sku"}), on="sku", how="left", maintain_order="left"
    ).join(best, on="row", how="left", maintain_order="left")
    exact = pl.col("of_sku").is_not_null()
    return with_sku.select(
        *(name for name in rows.columns if name not in ("condition", "finish", "language")),
        *(
            pl.coalesce(f"of_{name}", name).alias(name)
            for name in ("condition", "finish", "language")
        ),
        pl.coalesce("of_sku", "product_id").alias("product_id"),
        pl.when(exact).then(pl.lit("certain")).otherwise("certainty").alias("certainty"),
        pl.when(exact).then(pl.lit("sku")).otherwise("how").alias("how"),
    )


_ORDER: Final = {"scryfall_id": 0, "product_id": 0, "set_and_number": 1, "name": 2}
