"""Finds the product of each row of a collection: by SKU, by the ID of the marketplace or of a
catalog source, by set and number, and last by name. A row that fits several products equally gets
no product.

The catalog's matcher compares sets, numbers and names. A customer's row never creates a provisional
product.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.buying.collections.app_words import printings_of_word
from cardsync.buying.collections.match_by_number import match_by_number
from cardsync.buying.collections.offered_products import ID_COLUMNS, Offered, offered_products
from cardsync.catalog.judge_products import (
    finish_not_said,
    language_fits,
    said_or_base,
    without_edition,
)
from cardsync.catalog.match import LANGUAGE_OF_GAME, by_english_name, match, row_keys
from cardsync.catalog.set_names import part_columns
from cardsync.catalog.sources.source_record import IDS
from cardsync.platform.database.copy import new_table, read_rows
from cardsync.platform.database.session import Database
from cardsync.platform.value_types import FrameSchema

_OF_SKUS: Final = """
    SELECT c.marketplace_id, c.product_id, c.condition, c.printing, c.language
      FROM card c JOIN product p ON p.id = c.product_id AND NOT p.provisional
     WHERE c.seller_id = :seller AND c.marketplace_id IN (SELECT sku FROM wanted_sku)
"""
_SKU_SCHEMA: Final[FrameSchema] = {
    "sku": pl.Int64,
    "product_id": pl.Int64,
    "of_condition": pl.String,
    "of_finish": pl.String,
    "of_language": pl.String,
}
# The columns that the matcher's lines copy from their row.
_OF_LINE: Final = ("of_row", "game", "printing")


async def match_rows(
    database: Database,
    seller_id: int,
    games: Sequence[str],
    rows: pl.DataFrame,
) -> pl.DataFrame:
    """Return the rows with `product_id`, `certainty` and `how`, and with the game of the matched
    product. Rows without a game may be of any of `games`, the account's product lines.
    """
    read = rows.filter(~pl.col("left_out") & (pl.col("reason") == ""))
    keyed = await asyncio.to_thread(
        keyed_lines,
        read,
        games,
    )
    offered = await offered_products(database, keyed)
    found = await asyncio.to_thread(
        _found,
        keyed,
        offered,
    )
    found = pl.concat([found, await match_by_number(database, keyed, found)])
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


# Our set codes by the codes that apps use.
_OTHER_CODES: Final = {
    "list": "plst", "plist": "plst", "uplist": "ulst", "legi": "leg",
    # The codes of Gatherer, Magic Online and Deckbox.
    "1e": "lea", "2e": "leb", "2u": "2ed", "3e": "3ed", "4e": "4ed", "5e": "5ed", "6e": "6ed",
    "7e": "7ed", "an": "arn", "aq": "atq", "le": "leg", "dk": "drk", "fe": "fem", "hm": "hml",
    "ia": "ice", "al": "all", "mi": "mir", "vi": "vis", "wl": "wth", "te": "tmp", "st": "sth",
    "ex": "exo", "uz": "usg", "gu": "ulg", "ul": "ulg", "cg": "uds", "ud": "uds", "mm": "mmq",
    "ne": "nem", "pr": "pcy", "in": "inv", "ps": "pls", "ap": "apc", "od": "ody", "po": "por",
    "p2": "p02", "pk": "ptk", "ch": "chr", "ug": "ugl",
}  # fmt: skip
_CODE: Final = re.compile(r"[a-z0-9]{2,6}")
_ADDED: Final = re.compile(r"(?<=[a-z0-9]{2})(?:_|[ -](?=[a-z0-9]{3})).*")
# "Fire/Ice", "Fire / Ice" and "Fire//Ice" may be spellings of "Fire // Ice".
_SLASH: Final = r"(\p{L})\s*//?\s*(\p{L})"
# The words that apps write after the name of a token, and that catalogs omit.
_SAID_OF_TOKENS: Final = r" (?:Token|Emblem|Creature)(?: \([0-9*]+/[0-9*]+\))?$"


# A part after the name that may be the set, as in "Lightning Bolt (Magic 2011)" and "Lightning Bolt
# - Magic 2011".
_SET_BEHIND: Final = r"^(.+?)\s+(?:[(\[]([^()\[\]]+)[)\]]|[-–]\s+([^-–]+))$"


# The mark of a reprint in The List after a card's name. The app's set column then has the set that
# is reprinted.
_IN_THE_LIST: Final = r"\s*[(\[]The List[)\]]\s*$"


def _of_the_list(lines: pl.DataFrame) -> pl.DataFrame:
    """Replace the name, set and number of each reprint in The List by the name, set and number that
    the catalog uses. The catalog's numbers begin with the code of the reprinted set.
    """
    listed = pl.col("product_name").str.contains(_IN_THE_LIST) & (pl.col("game") == "magic")
    code, number = pl.col("set_code").str.strip_chars().str.to_uppercase(), pl.col("number")
    bare = number.str.contains(r"^[0-9]+[a-z★]?$") & ~code.is_in(("", "PLST", "LIST", "PLIST"))
    return lines.with_columns(
        product_name=pl.when(listed)
        .then(pl.col("product_name").str.replace(_IN_THE_LIST, ""))
        .otherwise("product_name"),
        number=pl.when(listed & bare)
        .then(pl.format("{}-{}", code, number))
        .when(listed & ~number.str.contains("-"))
        .then(pl.lit(""))
        .otherwise("number"),
        set_name=pl.when(listed).then(pl.lit("The List")).otherwise("set_name"),
        set_code=pl.when(listed).then(pl.lit("PLST")).otherwise("set_code"),
    )


def _codes(code: str, set_name: str) -> list[str | None]:
    """Return the codes that a row's set may have: the app's code, our code for it, the part of it
    before an app's addition ("GK2_AZORIU", "gk2-azorius"), and the set's name if it can be a code.
    """
    plain = code.strip().lower()
    named = set_name.strip().lower()
    if not plain and not _CODE.fullmatch(named):
        return [None]
    plain = plain or named
    before = _ADDED.sub("", plain)
    found = (plain, _OTHER_CODES.get(plain, ""), before, plain.lstrip("0"))
    return list(dict.fromkeys(filter(None, found)))


def _exploded(lines: pl.DataFrame, column: str, of: list[str], read: Any) -> pl.DataFrame:
    """Call `read` with the columns `of` of each line. Return the line once for each of the returned
    texts, with the text in `column`.
    """
    distinct = lines.select(of).unique()
    texts = [read(*one) for one in distinct.iter_rows()]
    table = distinct.with_columns(pl.Series(column, texts, dtype=pl.List(pl.String)))
    return lines.join(table, on=of, how="left", maintain_order="left").explode(column)


def keyed_lines(rows: pl.DataFrame, games: Sequence[str]) -> pl.DataFrame:
    """Return a line for each combination of game, printing, set and name that a row may have, with
    the matcher's keys. `row` is the number of the line, `of_row` the number of its row. `in_parts`
    is true if catalogs may divide the set's cards among several sets.
    """
    several = rows.with_columns(
        pl.when(pl.col("game") == "")
        .then(pl.lit(list(games), pl.List(pl.String)))
        .otherwise(pl.concat_list("game"))
        .alias("game")
    ).explode("game")
    lines = several.drop_nulls("game").rename({"row": "of_row", "name": "product_name"})
    lines = _of_the_list(lines)
    lines = _exploded(lines, "printing", ["finish", "game"], printings_of_word)
    lines = _exploded(lines, "code", ["set_code", "set_name"], _codes)
    faced = lines.with_columns(pl.col("product_name").str.replace(_SLASH, "${1} // ${2}"))
    is_other = faced["product_name"] != lines["product_name"]
    numbered = (pl.col("number") != "") & ((pl.col("set_name") != "") | (pl.col("set_code") != ""))
    tokens = lines.filter(
        numbered & pl.col("product_name").str.contains(_SAID_OF_TOKENS)
    ).with_columns(pl.col("product_name").str.replace(_SAID_OF_TOKENS, ""))
    lines = pl.concat([lines, faced.filter(is_other), tokens])
    setless = (pl.col("set_name") == "") & (pl.col("set_code") == "")
    said = lines.filter(setless).filter(pl.col("product_name").str.contains(_SET_BEHIND))
    # A text in brackets may be a set or a category, so each such line is also tried without a set.
    doubtful = pl.col("code").is_null() & pl.col("set_name").str.starts_with("[")
    bare = lines.filter(doubtful).with_columns(set_name=pl.lit(""))
    in_set = said.with_columns(
        product_name=pl.col("product_name").str.extract(_SET_BEHIND, 1),
        set_name=pl.coalesce(pl.col("product_name").str.extract(_SET_BEHIND, at) for at in (2, 3)),
    )
    lines = pl.concat([lines, bare, in_set])
    printing = pl.when(pl.col("printing") != "").then("printing").alias("printing")
    keyed = row_keys(lines.with_columns(printing, rarity=pl.lit("")))
    keyed = keyed.with_columns(
        pl.col("printing").fill_null(""),
        # The series in a set's name is its code, as in "SV8a: Terastal Fest ex".
        code=pl.when(pl.col("game").is_in(list(LANGUAGE_OF_GAME)))
        .then(pl.coalesce("code", "set_series"))
        .otherwise("code"),
    ).with_row_index("row")
    whole = part_columns(keyed.filter(pl.col("set_name") != "")).select("game", "set_key").unique()
    return keyed.join(
        whole.with_columns(in_parts=pl.lit(True)),
        on=["game", "set_key"],
        how="left",
        maintain_order="left",
    ).with_columns(pl.col("in_parts").fill_null(False))


def _with_sets(keyed: pl.DataFrame, catalog: pl.DataFrame) -> pl.DataFrame:
    """Give a line the set of its code if the catalog lacks its set's name and only one set has that
    code. `has_set` is true if the line has a set's name or code.
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
    is_named = pl.col("named").fill_null(False) | pl.col("in_parts")
    by_name = (pl.col("set_name") != "") & is_named
    return known.with_columns(
        set_key=pl.when(by_name).then("set_key").otherwise(pl.coalesce("coded", "set_key")),
        has_set=(pl.col("set_name") != "") | pl.col("code").is_not_null(),
    )


def _found(keyed: pl.DataFrame, offered: Offered) -> pl.DataFrame:
    """Return the matches of the lines by ID, by set and number, and by name. A tie of several
    products is a match without a product.
    """
    catalog, with_ids = offered
    keyed = _with_sets(keyed, catalog)
    has_set = pl.col("has_set")
    by_ids = [_by_id(keyed, with_ids, kind, column) for kind, column in ID_COLUMNS.items()]
    hits = match(keyed, catalog).with_columns(pl.col("row").cast(pl.UInt32))
    lines = keyed.select("row", "of_row", "game", "printing", "number_key", "name_key", "has_set")
    numbers = catalog.select(product_id="id", its_number="number_key")
    matched = (
        hits.filter(pl.col("outcome") != "unmatched")
        .join(lines, on="row")
        .join(numbers, on="product_id", how="left")
        .select(
            *_OF_LINE,
            "product_id",
            certainty=_certainty(),
            how=pl.when((pl.col("number_key") == "") != (pl.col("its_number") == ""))
            .then(pl.lit("name"))
            .otherwise(pl.lit("set_and_number")),
        )
    )
    named = pl.col("product_name") != ""
    unnumbered = keyed.filter(has_set & named & (pl.col("number_key") == ""))
    nameless = keyed.filter(has_set & ~named & (pl.col("number_key") != ""))
    in_sets = pl.concat(
        [
            *by_ids,
            matched,
            _alone(unnumbered, catalog, ["game", "set_key", "name_key"]),
            _alone(nameless, catalog, ["game", "set_key", "number_key"]),
        ]
    )
    # Rows are matched by the name alone only if none of their lines was matched in a set: a line's
    # set may be a part of the name.
    setless = keyed.filter(~has_set & named).join(in_sets, on="of_row", how="anti")
    return pl.concat([in_sets, _alone(setless, catalog, ["game", "name_key"])])


def _certainty() -> pl.Expr:
    tied = pl.col("product_id").is_null()
    said = (pl.col("number_key") != "") & (pl.col("its_number") != "") & pl.col("has_set")
    without = ~said | by_english_name()
    return (
        pl.when(tied)
        .then(pl.lit("possible"))
        .when(without)
        .then(pl.lit("probable"))
        .otherwise(pl.lit("certain"))
    )


def _by_id(keyed: pl.DataFrame, with_ids: pl.DataFrame, kind: str, column: str) -> pl.DataFrame:
    """Return the matches of lines whose ID belongs to exactly one product in the line's finish. If
    products of the line's set have that ID, other products are ignored.
    """
    lines = keyed.select(*_OF_LINE, "finish_key", "set_key", key=pl.col(column).cast(pl.String))
    pairs = lines.join(with_ids.filter(kind=kind), on=["game", "key"], suffix="_offered")
    fits = pl.col("finish_key_offered").is_null() | _finish_fits("finish_key_offered")
    of_set = pl.col("set_key") == pl.col("set_key_offered")
    in_set = pairs.filter(fits).filter(of_set | ~of_set.any().over("of_row"))
    of_card = ["of_row", "game", "set_key_offered"]
    exact = said_or_base(in_set, of_card, "finish_key_offered").unique(["of_row", "id"])
    sole = exact.filter(pl.col("of_row").is_unique())
    return sole.select(
        *_OF_LINE,
        product_id="id",
        certainty=pl.lit("certain"),
        how=pl.lit("product_id" if kind == "listing" else column),
    )


def _finish_fits(offered: str) -> pl.Expr:
    return (pl.col(offered) == pl.col("finish_key")) | finish_not_said()


def _alone(lines: pl.DataFrame, catalog: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    """Return the matches of lines by the columns `on`. Several products are a tie. If products with
    the line's number or variant are among the candidates, other products are ignored.
    """
    own = [f"{name}_key" for name in ("set", "number", "variant", "back", "finish", "language")]
    offered = [f"{name}_offered" for name in (*own, "number_total")]
    known = catalog.select("id", *on, **{name: name.removesuffix("_offered") for name in offered})
    keys = {*_OF_LINE, *on, "finish_key", "language_key", "variant_key", "number_key"}
    pairs = lines.select(sorted(keys)).join(known, on=on)
    offered_finish = pl.col("finish_key_offered")
    exact = offered_finish.is_null() | _finish_fits("finish_key_offered")
    of_pokemon = pl.col("game").str.starts_with("pokemon")
    no_edition = (of_pokemon & without_edition(offered_finish).eq(pl.col("finish_key"))).fill_null(
        False
    )
    spoken = language_fits(pl.col("language_key"), pl.col("language_key_offered"))
    variant, number = pl.col("variant_key"), pl.col("number_key")
    varied = (variant != "") & (variant == pl.col("variant_key_offered"))
    numbered = (number != "") & (number == pl.col("number_key_offered"))
    nearest = pairs.filter((exact | no_edition) & spoken)
    nearest = nearest.filter(exact | ~exact.any().over("of_row"))
    nearest = nearest.filter(numbered | ~numbered.any().over("of_row"))
    nearest = nearest.filter(varied | ~varied.any().over("of_row"))
    of_card = [name for name in offered if name != "finish_key_offered"]
    nearest = said_or_base(nearest, ["of_row", "game", *of_card], "finish_key_offered")
    ids = nearest.group_by(_OF_LINE, maintain_order=True).agg(pl.col("id").unique().alias("ids"))
    sole = pl.col("ids").list.len() == 1
    return ids.select(
        *_OF_LINE,
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
    await new_table(session, "wanted_sku", wanted, {"sku": "bigint"})
    return await read_rows(session, _OF_SKUS, _SKU_SCHEMA, {"seller": seller_id})


def _joined(rows: pl.DataFrame, found: pl.DataFrame, skus: pl.DataFrame) -> pl.DataFrame:
    """Give each row its most certain match: by ID, else by set and number, else by name. Matches of
    the same kind with different products are a tie.
    """
    first = found.with_columns(
        pl.col("how").replace_strict(_ORDER, return_dtype=pl.Int8).alias("order")
    ).filter(pl.col("order") == pl.col("order").min().over("of_row"))
    one = first.group_by("of_row").agg(
        pl.col("product_id").drop_nulls().unique().alias("ids"),
        pl.col("product_id").is_null().any().alias("tied"),
        pl.col("certainty", "how", "game", "printing").first(),
    )
    sole = (pl.col("ids").list.len() == 1) & ~pl.col("tied")
    best = one.select(
        row="of_row",
        product_id=pl.when(sole).then(pl.col("ids").list.first()),
        certainty=pl.when(sole).then("certainty").otherwise(pl.lit("possible")),
        how="how",
        its_game=pl.when(sole).then("game"),
        its_finish=pl.when(sole).then("printing"),
    )
    with_sku = rows.join(
        skus.rename({"product_id": "of_sku"}), on="sku", how="left", maintain_order="left"
    ).join(best, on="row", how="left", maintain_order="left")
    exact = pl.col("of_sku").is_not_null()
    return with_sku.select(
        *(name for name in rows.columns if name not in _CORRECTED),
        *(pl.coalesce(f"of_{name}", name).alias(name) for name in ("condition", "language")),
        finish=pl.coalesce("of_finish", "its_finish", "finish"),
        game=pl.coalesce("its_game", "game"),
        # A SKU identifies condition, finish and language, so unknown words do not matter.
        reason=pl.when(exact & ~pl.col("left_out")).then(pl.lit("")).otherwise("reason"),
        text=pl.when(exact & ~pl.col("left_out")).then(pl.lit("")).otherwise("text"),
        product_id=pl.coalesce("of_sku", "product_id"),
        certainty=pl.when(exact).then(pl.lit("certain")).otherwise("certainty"),
        how=pl.when(exact).then(pl.lit("sku")).otherwise("how"),
    )


_CORRECTED: Final = ("condition", "finish", "language", "game", "reason", "text")
_ORDER: Final = {**dict.fromkeys(IDS, 0), "product_id": 0, "set_and_number": 1, "name": 2}
