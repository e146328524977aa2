"""Finds the product of each inventory row, and creates a provisional product for a card that the
catalog lacks.

All sellers share the provisional product of a card, so a custom listing's title is never part of
it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from sqlalchemy import text

from cardsync.catalog import name_index
from cardsync.catalog.condition import SEALED
from cardsync.catalog.judge_products import ENGLISH, NOT_SAID
from cardsync.catalog.match import CATALOG_KEYS, LANGUAGE_OF_GAME, match, row_keys
from cardsync.catalog.printings import NORMAL
from cardsync.catalog.set_names import part_columns, set_columns
from cardsync.platform import errors
from cardsync.platform.database.copy import new_table, read_rows
from cardsync.platform.database.session import Database, run
from cardsync.platform.value_types import HandlerOptions

# `resolve` needs these columns of each row, besides `row` and `title`; a null printing is unknown.
ROW_COLUMNS = (
    "product_line",
    "set_name",
    "product_name",
    "number",
    "rarity",
    "condition",
    "printing",
    "language",
)

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
OFFERED_SQL = f"""
    SELECT id, marketplace_product_id, game, {", ".join(CATALOG_KEYS)}
      FROM product
     WHERE NOT provisional
       AND ((game, set_key) IN (SELECT game, key FROM wanted)
            OR (game, set_code_key) IN (SELECT game, key FROM wanted))
"""
_OFFERED: HandlerOptions = {
    "id": pl.Int64,
    "marketplace_product_id": pl.Int64,
    "game": pl.String,
    **CATALOG_KEYS,
    "sealed": pl.String,
}


class Printings(NamedTuple):
    """The printings of some rows. Several rows have the same printing, because a seller lists a
    printing in several conditions.

    `keyed` has one row per printing, with the printing's number as `row`, its texts, the unchanged
    name as `listed_name`, and ROW_KEYS. `of_rows` has each original `row` with the number of its
    `printing`, sorted by row.
    """

    keyed: pl.DataFrame
    of_rows: pl.DataFrame

    def spread(self, found: pl.DataFrame) -> pl.DataFrame:
        """Return `row` with the columns of `found` for the row's printing. `found` has one row per
        printing, in the order of `keyed`.
        """
        return self.of_rows.select("row").hstack(found[self.of_rows["printing"]])


def printings(rows: pl.DataFrame) -> Printings:
    """Group `rows`, which have `row`, ROW_COLUMNS and `title`, into printings."""
    # The product does not depend on the condition, except on whether the card is sealed.
    condition = pl.when(pl.col("condition") == SEALED).then("condition").alias("condition")
    grouped = (
        rows.with_columns(condition)
        .group_by(*ROW_COLUMNS, "title")
        .agg(pl.col("row").alias("rows"))
    )
    # A custom listing is named "<catalog name>: <title>".
    suffix = pl.concat_str(pl.lit(": "), "title")
    plain = pl.when(pl.col("title") != "").then(pl.col("product_name").str.strip_suffix(suffix))
    named = (
        grouped.drop("title", "rows")
        .rename({"product_line": "game"})
        .with_columns(
            grouped.select(plain.otherwise("product_name").alias("product_name")),
            listed_name=grouped["product_name"],
        )
    )
    keyed = row_keys(named).with_row_index("row")
    of_rows = grouped.select(row="rows").with_row_index("printing").explode("row").sort("row")
    return Printings(keyed, of_rows)


async def resolve(database: Database, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `row`, `product_id` and `match` (matched, ambiguous or provisional) of every row,
    sorted by row.
    """
    # PostgreSQL reads the catalog while this process computes the keys of the rows.
    reading = asyncio.create_task(offered(database, rows.select("product_line", "set_name")))
    try:
        printed = await asyncio.to_thread(printings, rows)
    finally:
        catalog = await reading
    return printed.spread(await found(database, printed, catalog))


async def lines_meant(
    database: Database, own: Sequence[str], rows: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Return the product line of each row: its own, or the only one of the seller's `own` lines
    whose catalog has the card. `rows` maps the beginning of error messages (`entries[3].`) to a row
    with ROW_COLUMNS. Raises InvalidPayload.
    """
    meant = {}
    for at, row in rows.items():
        given = row["product_line"] or (own[0] if len(own) == 1 else "")
        if given and given not in own:
            raise errors.InvalidPayload(
                f"{at}game: {given[:60]!r} is not one of this account's product lines"
            )
        if given:
            meant[at] = given
    unsaid = [at for at in rows if at not in meant]
    found = await _in_lines(database, [rows[at] for at in unsaid], own) if unsaid else []
    for at, products in zip(unsaid, found, strict=True):
        name = rows[at]["product_name"][:60]
        if not products:
            raise errors.InvalidPayload(
                f"{at}game: no product line has {name!r} of this set; send one of {', '.join(own)}"
            )
        if len(products) > 1:
            candidates = ", ".join(
                f"{line} ({'several products' if id is None else f'product {id}'})"
                for line, id in products.items()
            )
            raise errors.InvalidPayload(
                f"{at}game: {name!r} is in {candidates}; send the game or the product_id"
            )
        meant[at] = next(iter(products))
    return meant


async def _in_lines(
    database: Database, rows: Sequence[Mapping[str, object]], lines: Sequence[str]
) -> list[dict[str, int | None]]:
    """Return for each row the product lines whose catalog has the card, each with the product id,
    or with None if several products match.
    """
    places = list(itertools.product(range(len(rows)), lines))
    known: list[dict[str, int | None]] = [{} for _ in rows]
    frame = pl.DataFrame(
        [
            {**{name: rows[at][name] for name in ROW_COLUMNS}, "product_line": line, "title": "",
             "row": row}
            for row, (at, line) in enumerate(places)
        ],
        schema_overrides={"row": pl.UInt32, "printing": pl.String},
    )  # fmt: skip
    if frame.is_empty():
        return known
    printed = await asyncio.to_thread(printings, frame)
    catalog = await offered(database, frame.select("product_line", "set_name"))
    matched = await asyncio.to_thread(match, printed.keyed, catalog)
    hits = printed.spread(matched.drop("row"))
    for row, product, outcome in hits.select("row", "product_id", "outcome").iter_rows():
        if outcome != "unmatched":
            at, line = places[row]
            known[at][line] = product
    return known


async def found(database: Database, printed: Printings, catalog: pl.DataFrame) -> pl.DataFrame:
    """Return `product_id` and `match` of every printing, in order. `catalog` is the result of
    `offered` for at least the sets of these printings.
    """
    hits = await asyncio.to_thread(match, printed.keyed, catalog)
    known = hits.filter(pl.col("product_id").is_not_null()).select(
        "row",
        "product_id",
        match="outcome",
    )
    left = printed.keyed.join(
        hits.filter(pl.col("product_id").is_null()).select("row", "outcome"),
        on="row",
    )
    if left.height:
        # The printings are sorted by their first rows, so that a provisional product of several
        # printings gets the texts of the first row.
        first = printed.of_rows.unique("printing", keep="first", maintain_order=True)["printing"]
        left = first.rename("row").to_frame().join(left, on="row", maintain_order="left")
        known = pl.concat(
            [known, (await provisional(database, left)).select("row", "product_id", "match")],
        )
    return known.sort("row").drop("row")


async def offered(database: Database, sets: pl.DataFrame) -> pl.DataFrame:
    """Return the catalog's products of the sets in `sets`."""
    wanted = await asyncio.to_thread(_wanted, sets)
    async with database.shared() as session:
        await new_table(session, "wanted", wanted, {})
        found = await read_rows(session, OFFERED_SQL, _OFFERED)
    return found.with_columns(sealed=pl.col("sealed") == "t")


def _wanted(sets: pl.DataFrame) -> pl.DataFrame:
    named = sets.unique().rename({"product_line": "game"})
    keyed = named.hstack(set_columns(named))
    keys = pl.concat(
        [
            *(keyed.select("game", key=name) for name in ("set_key", "set_series")),
            part_columns(keyed).select("game", key="part_key"),
        ]
    ).drop_nulls()
    return keys.unique().sort("game", "key")


def identity() -> pl.Expr:
    """Return a text that identifies the product, by which later loads and uploads find it. Only its
    MD5 is stored, which fits into an index.
    """
    return pl.concat_str([pl.col(name).fill_null("") for name in _IDENTITY], separator="\x1f")


async def provisional(database: Database, rows: pl.DataFrame) -> pl.DataFrame:
    """Add `product_id` and `match` to the rows. The product is an existing provisional product or a
    new one.
    """
    # The product of copies in all languages is English, except in games with one other language.
    spoken = pl.col("game").is_in(list(LANGUAGE_OF_GAME))
    rows = rows.with_columns(
        pl.col("printing").fill_null(NORMAL),
        pl.col("finish_key").replace(NOT_SAID, NORMAL.lower()),
        language=pl.when(spoken).then("language").otherwise(pl.lit("English")),
        language_key=pl.when(spoken).then("language_key").otherwise(pl.lit(ENGLISH)),
    ).with_columns(
        identity=pl.concat_str(pl.lit("row\x1f"), identity()),
        finish="printing",
        match=pl.when(pl.col("outcome") == "ambiguous")
        .then(pl.lit("ambiguous"))
        .otherwise(pl.lit("provisional")),
    )
    keys = [name for name in CATALOG_KEYS if name != "set_code_key"]
    columns = ("identity", *_TEXTS, *keys)
    # The rows are sorted, so that two sellers who create the same products wait for each other
    # instead of deadlocking.
    distinct = (
        rows.unique("identity", keep="first", maintain_order=True).select(columns).sort("identity")
    )
    found = [
        await _provisional_chunk(database, distinct.slice(at, _CHUNK), columns)
        for at in range(0, distinct.height, _CHUNK)
    ]
    ids = pl.concat(found)
    return rows.join(ids, on="identity", how="left", maintain_order="left")


async def _provisional_chunk(
    database: Database,
    rows: pl.DataFrame,
    columns: tuple[str, ...],
) -> pl.DataFrame:
    listed = ", ".join(columns[1:])
    rows = rows.with_row_index("n")
    async with database.shared() as session:
        await new_table(session, "incoming", rows, {"n": "integer", "sealed": "boolean"})
        made = await run(
            session,
            f"""
                INSERT INTO product (identity, {listed}, provisional)
                SELECT md5(identity), {listed}, true FROM incoming ORDER BY n
                ON CONFLICT (identity) DO NOTHING
            """,
            {},
        )
        if made:
            await name_index.add_provisional(session, rows)
        ids = await read_rows(
            session,
            # A subquery looks up each row. The temp table has no statistics, so a join would read
            # the whole catalog.
            "SELECT n, (SELECT coalesce(p.adopted_by, p.id) FROM product p"
            " WHERE p.identity = md5(i.identity)) FROM incoming i",
            {"n": pl.UInt32, "product_id": pl.Int64},
        )
    return rows.join(ids, on="n", how="left").select("identity", "product_id")


async def adopted(database: Database, product_ids: list[int]) -> pl.DataFrame:
    """Return product_id_old and adopted_id of those products in `product_ids` that are no longer
    provisional, that another product has adopted, or that are provisional in a language other than
    English although the game has English products.
    """
    async with database.shared() as session:
        rows = await session.execute(
            text("""
                SELECT id, coalesce(adopted_by, id) FROM product
                 WHERE id = ANY(CAST(:ids AS bigint[]))
                   AND (NOT provisional OR adopted_by IS NOT NULL
                        -- Earlier versions of this program made a product for each language.
                        OR (language_key IS DISTINCT FROM :english
                            AND game <> ALL (CAST(:spoken AS text[]))))
            """),
            {"ids": product_ids, "english": ENGLISH, "spoken": list(LANGUAGE_OF_GAME)},
        )
        pairs = [tuple(row) for row in rows]
    return pl.DataFrame(
        pairs,
        schema={"product_id_old": pl.Int64, "adopted_id": pl.Int64},
        orient="row",
    )
