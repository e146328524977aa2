"""Reads the products of the catalog that may match the rows of a collection: the products of a
row's set with the row's name and number, and, for a row without a set, all products with its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.match import CATALOG_KEYS, by_english_name
from cardsync.catalog.set_names import part_columns
from cardsync.catalog.sources.source_record import IDS
from cardsync.platform.database.copy import new_table, read_rows
from cardsync.platform.database.session import Database
from cardsync.platform.value_types import FrameSchema

_CATALOG: Final[FrameSchema] = {
    "id": pl.Int64,
    "marketplace_product_id": pl.Int64,
    "game": pl.String,
    **dict.fromkeys(CATALOG_KEYS, pl.String),
    "code": pl.String,
}
_WITH_IDS: Final[FrameSchema] = {
    "id": pl.Int64,
    "game": pl.String,
    "set_key": pl.String,
    "finish_key": pl.String,
    "kind": pl.String,
    "key": pl.String,
}
# A row's columns with IDs, by the ID's kind in `product_elsewhere`; `listing` is the marketplace's
# ID.
ID_COLUMNS: Final = {"listing": "listing_id"} | {name.removesuffix("_id"): name for name in IDS}
_SETS: Final = {name: _CATALOG[name] for name in ("game", "set_key", "set_code_key", "code")}


def _columns(schema: Iterable[str]) -> str:
    return ", ".join("lower(p.set_code)" if name == "code" else f"p.{name}" for name in schema)


# The products by name. `w.numbers` has the numbers of all lines with that name, each between
# spaces; it is null if a line has no number, and then all products with the name are read. Products
# without a number, and products whose number has a suffix, are read, too.
_OF_NAMES: Final = f"""
    SELECT {_columns(_CATALOG)} FROM product p
      JOIN wanted_key w ON w.kind = 'name' AND p.game = w.game AND p.name_key = w.key
     WHERE NOT p.provisional
       AND (w.numbers IS NULL OR p.number_key = ''
            OR strpos(w.numbers, ' ' || p.number_key || ' ') > 0
            OR strpos(w.numbers, ' ' || regexp_replace(p.number_key, '[^0-9]+$', '') || ' ') > 0)
"""
# The products by set and number, for lines without a name or with a name in another language.
_OF_NUMBERS: Final = f"""
    SELECT {_columns(_CATALOG)} FROM product p
      JOIN wanted_key w ON w.kind = 'number' AND p.game = w.game AND lower(p.set_code) = w.key
           AND p.number_key = w.numbers
     WHERE NOT p.provisional
"""
_OF_SETS: Final = """
    NOT p.provisional AND (
        (p.game, p.set_key) IN (SELECT game, key FROM wanted_key WHERE kind = 'set')
        OR (p.game, lower(p.set_code)) IN (SELECT game, key FROM wanted_key WHERE kind = 'code')
        OR (p.game, p.name_key) IN (
            SELECT game, key FROM wanted_key WHERE kind = 'name' AND numbers IS NULL
        )
    )
"""
_THEIR_SETS: Final = f"SELECT DISTINCT {_columns(_SETS)} FROM product p WHERE {_OF_SETS}"
_OF_IDS: Final = """
    SELECT p.id, p.game, p.set_key, p.finish_key, w.kind, w.key
      FROM wanted_key w
      JOIN product p ON p.marketplace_product_id = w.key::bigint AND p.game = w.game
     WHERE w.kind = 'listing' AND NOT p.provisional
     UNION ALL
    SELECT p.id, p.game, p.set_key, p.finish_key, w.kind, w.key
      FROM wanted_key w
      JOIN product_elsewhere e ON e.kind = w.kind AND e.id = w.key
      JOIN product p ON p.id = e.product_id AND p.game = w.game
     WHERE NOT p.provisional
"""


class Offered(NamedTuple):
    """The products that may match. `catalog` has them with the matcher's keys. If `catalog` lacks
    the set of a line, it also has rows that only have sets, so that set codes can be looked up.
    `with_ids` has the products with a line's ID, in any set.
    """

    catalog: pl.DataFrame
    with_ids: pl.DataFrame


async def offered_products(database: Database, keyed: pl.DataFrame) -> Offered:
    """Return the products that may match the lines of `match_collection.keyed_lines`."""
    wanted = await asyncio.to_thread(_wanted, keyed)
    async with database.shared() as session:
        await new_table(session, "wanted_key", wanted, {}, analyzed=True)
        found = await read_rows(session, _OF_NAMES, _CATALOG)
        if keyed.select(_by_number().any()).item():
            found = pl.concat([found, await read_rows(session, _OF_NUMBERS, _CATALOG)])
        catalog = await asyncio.to_thread(_of_their_sets, keyed, found)
        if _lacks_sets(keyed, catalog):
            sets = await read_rows(session, _THEIR_SETS, _SETS)
            catalog = pl.concat([catalog, sets], how="diagonal")
        return Offered(catalog, await _with_ids(session, keyed))


async def _with_ids(session: AsyncSession, keyed: pl.DataFrame) -> pl.DataFrame:
    if any(_ids(keyed, name).count() for name in ID_COLUMNS.values()):
        return await read_rows(session, _OF_IDS, _WITH_IDS)
    return pl.DataFrame(schema=_WITH_IDS)


def _ids(keyed: pl.DataFrame, column: str) -> pl.Series:
    return keyed[column].cast(pl.String).replace("", None)


def _of_their_sets(keyed: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the products in a line's set or in a part of it, and the products with the name of a
    line that has no set.
    """
    named = pl.col("set_name") != ""
    without = keyed.filter(~named & pl.col("code").is_null())
    in_parts = part_columns(keyed.filter(named)).select("game", set_key="part_key")
    parts = [
        found.join(keyed.filter(named), on=["game", "set_key"], how="semi"),
        found.join(in_parts, on=["game", "set_key"], how="semi"),
        found.join(keyed, on=["game", "code"], how="semi"),
        found.join(without, on=["game", "name_key"], how="semi"),
    ]
    return pl.concat(parts).unique("id").with_columns(sealed=pl.col("sealed") == "t")


def _lacks_sets(keyed: pl.DataFrame, catalog: pl.DataFrame) -> bool:
    """Return whether a line's set is missing in `catalog`, or a line has only the code of its
    set.
    """
    named = pl.col("set_name") != ""
    strange = keyed.filter(named).join(catalog, on=["game", "set_key"], how="anti")
    return bool(strange.height or keyed.filter(~named)["code"].count())


def _wanted(keyed: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the table `wanted_key`: the keys, with their kinds, of the products that
    may match the lines.
    """
    named = pl.col("set_name") != ""
    in_set = named | pl.col("code").is_not_null()
    # A line without a number may match any product with its name in its set. The number of a line
    # whose set catalogs divide into parts is not used, because the parts number cards differently.
    number = pl.when((pl.col("number_key") != "") & ~pl.col("in_parts")).then("number_key")
    names = pl.concat(
        [
            keyed.select("game", pl.when(in_set).then(number).alias("number_key"), key="name_key"),
            keyed.filter(in_set).select("game", number.alias("number_key"), key="alias_key"),
        ]
    )
    its = pl.col("number_key")
    numbers = pl.lit(" ") + its.unique().str.join(" ") + pl.lit(" ")
    of_names = names.filter(pl.col("key") != "").group_by("game", "key")
    nameless = keyed.filter(_by_number() & pl.col("code").is_not_null())
    parts = [
        of_names.agg(
            kind=pl.lit("name"),
            numbers=pl.when(its.is_not_null().all()).then(numbers),
        ),
        _keys(keyed.filter(named), "set", "set_key"),
        _keys(keyed, "code", "code"),
        *(_keys(keyed, kind, name) for kind, name in ID_COLUMNS.items()),
        nameless.select("game", kind=pl.lit("number"), key="code", numbers="number_key").unique(),
    ]
    return pl.concat(parts, how="diagonal")


def _by_number() -> pl.Expr:
    return (pl.col("product_name") == "") | (by_english_name() & (pl.col("number_key") != ""))


def _keys(lines: pl.DataFrame, kind: str, key: str) -> pl.DataFrame:
    keys = lines.select("game", kind=pl.lit(kind), key=pl.col(key).cast(pl.String))
    return keys.filter(pl.col("key").fill_null("") != "").unique()
