"""Finds the product of rows whose name the catalog lacks, such as the name of a back face or a
flavor name, by set and number. A row with the name of another card gets no product.
"""

from __future__ import annotations

import asyncio
from typing import Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.judge_products import finish_not_said, language_fits, said_or_base
from cardsync.platform.database.copy import new_table, read_rows
from cardsync.platform.database.session import Database
from cardsync.platform.value_types import FrameSchema

# The games in which all cards with the same number in a set have the same name.
_GAMES: Final = ("magic",)
_FACES: Final = ("name_key", "back_key", "alias_key")
_OWN: Final = ("finish_key", "language_key", "variant_key", "number_total")
_OF_CARD: Final = [
    f"{name}_offered" for name in ("name_key", "back_key", *_OWN) if name != "finish_key"
]
_PAIRS: Final[FrameSchema] = {
    "row": pl.Int64,
    "by_name": pl.Int64,
    "id": pl.Int64,
    **{f"{name}_offered": pl.String for name in (*_OWN, "name_key", "back_key")},
}
_PRODUCT: Final = ", ".join(f"p.{name.removesuffix('_offered')}" for name in [*_PAIRS][3:])
_IN_SET: Final = """
    SELECT a.row, {by_name}, p.id, {columns}
      FROM asked_number a
      JOIN product p ON p.game = a.game AND {its_set} AND p.number_key = a.number_key
     WHERE NOT p.provisional AND NOT p.sealed
"""
_PRODUCTS: Final = " UNION ".join(
    _IN_SET.format(by_name=by_name, its_set=its_set, columns=_PRODUCT)
    for by_name, its_set in ((1, "p.set_key = a.set_key"), (0, "lower(p.set_code) = a.code"))
)
# The statement returns the rows' names that are a name or a back face of any product. In
# `catalog_name`, the words of a name include the words of its back faces.
_KNOWN: Final = """
    SELECT DISTINCT a.face FROM asked_face a
     WHERE EXISTS (SELECT FROM catalog_name n
                    WHERE n.game = a.game AND n.name_key = a.face AND n.printings > 0)
        OR EXISTS (SELECT FROM catalog_name n
                     JOIN product p ON p.game = n.game AND p.name_key = n.name_key
                    WHERE n.game = a.game AND n.words @@ CAST(a.words AS tsquery)
                      AND p.back_key = a.face AND NOT p.provisional)
"""


async def match_by_number(
    database: Database, keyed: pl.DataFrame, found: pl.DataFrame
) -> pl.DataFrame:
    """Match rows that have no match yet: if a set has only one product with the line's number, that
    product is the match. Return the same columns as `match_collection`.
    """
    left = await asyncio.to_thread(_left, keyed, found)
    if left.is_empty():
        return found.clear()
    async with database.shared() as session:
        pairs = await _read(session, _PRODUCTS, "asked_number", _asked(left), _PAIRS)
        faces = await asyncio.to_thread(_faces, left)
        known = await _read(session, _KNOWN, "asked_face", faces, {"face": pl.String})
    return await asyncio.to_thread(_sole, left, pairs, known, found)


def _left(keyed: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the lines that have a name, a set and a number. Omit the rows that have a match, and
    the rows that cannot belong to one of `_GAMES`.
    """
    in_set = (pl.col("set_name") != "") | pl.col("code").is_not_null()
    asked = (pl.col("product_name") != "") & (pl.col("number_key") != "") & in_set
    rows = keyed.join(found, on="of_row", how="anti")
    return rows.filter(asked, pl.col("game").is_in(_GAMES).any().over("of_row"))


def _asked(left: pl.DataFrame) -> pl.DataFrame:
    its_set = pl.when(pl.col("set_name") != "").then("set_key").alias("set_key")
    return left.select(pl.col("row").cast(pl.Int64), "game", its_set, "code", "number_key")


def _faces(left: pl.DataFrame) -> pl.DataFrame:
    parts = [left.select("game", face=name) for name in _FACES]
    faces = pl.concat(parts).filter(pl.col("face") != "").unique()
    quoted = pl.col("face").str.replace_all(r"[\\']", "${0}${0}").str.split(" ")
    words = pl.concat_str(pl.lit("'"), quoted.list.join("' & '"), pl.lit("'"))
    return faces.with_columns(words=words)


async def _read(
    session: AsyncSession, sql: str, table: str, asked: pl.DataFrame, schema: FrameSchema
) -> pl.DataFrame:
    types = {name: "bigint" for name, kind in asked.schema.items() if kind == pl.Int64}
    await new_table(session, table, asked, types, analyzed=True)
    return await read_rows(session, sql, schema)


def _sole(
    left: pl.DataFrame, pairs: pl.DataFrame, known: pl.DataFrame, found: pl.DataFrame
) -> pl.DataFrame:
    both = left.with_columns(pl.col("row").cast(pl.Int64)).join(pairs, on="row")
    # Products found by the set's name have precedence over products found by the set's code. A row
    # that fits products of two games gets no product.
    both = both.filter(pl.col("by_name") == pl.col("by_name").max().over("of_row"))
    alone = pl.col("game").n_unique().over("of_row") == 1
    both = both.filter(alone).filter(pl.col("game").is_in(_GAMES))
    faces = known.with_columns(known=pl.lit(True))
    for face in _FACES:
        its = faces.rename({"face": face, "known": f"{face}_known"})
        both = both.join(its, on=face, how="left")
    fits = (
        (_or_none("finish_key") | finish_not_said())
        & _or_none("number_total")
        & language_fits(pl.col("language_key"), pl.col("language_key_offered"))
        & (
            (pl.col("variant_key") == "")
            | (pl.col("variant_key_offered") == "")
            | (pl.col("variant_key") == pl.col("variant_key_offered"))
        )
    )
    fitting = both.filter(fits, *map(_is_no_others, _FACES))
    ids = (
        said_or_base(fitting, ["of_row", "game", *_OF_CARD], "finish_key_offered")
        .group_by("of_row", "game", "printing", maintain_order=True)
        .agg(pl.col("id").unique().alias("ids"))
    )
    sole = pl.col("ids").list.len() == 1
    return ids.select(
        "of_row",
        "game",
        "printing",
        product_id=pl.when(sole).then(pl.col("ids").list.first()),
        certainty=pl.when(sole).then(pl.lit("probable")).otherwise(pl.lit("possible")),
        how=pl.lit("set_and_number"),
    ).select(found.columns)


def _or_none(field: str) -> pl.Expr:
    offered = pl.col(f"{field}_offered")
    return offered.is_null() | (offered == pl.col(field)).fill_null(field == "number_total")


def _is_no_others(face: str) -> pl.Expr:
    """Return the expression that a row's name is unknown, or is the name or back face of the
    product.
    """
    own = pl.any_horizontal(
        (pl.col(face) == pl.col(f"{name}_offered")).fill_null(False)
        for name in ("name_key", "back_key")
    )
    return pl.col(f"{face}_known").is_null() | own
