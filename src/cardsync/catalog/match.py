"""Matches inventory rows to catalog products by their keys, with one verdict per row. Pure.

`catalog_keys` runs once when a catalog is loaded, and its columns are stored with the product.
`row_keys` runs for each upload. `match` joins both. `explained` adds the reason of each failure, to
check a catalog. A row gets a product only if every part of the identity agrees and exactly one
product remains.

A product in English is for copies in every language. A product that a catalog lists in another
language is only for copies in that language.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from cardsync.catalog.collector_number import number_columns
from cardsync.catalog.condition import LANGUAGES, SEALED
from cardsync.catalog.judge_products import (
    NOT_SAID,
    NUMBER_TELLS_VARIANTS,
    explain_rows,
    judge_rows,
)
from cardsync.catalog.printings import SEALED_FINISH, own_printings
from cardsync.catalog.product_names import name_columns
from cardsync.catalog.set_names import part_columns, set_code_key, set_columns

CATALOG_KEYS = {
    "set_key": pl.String,
    "set_code_key": pl.String,
    "name_key": pl.String,
    "back_key": pl.String,
    "variant_key": pl.String,
    "number_key": pl.String,
    "number_total": pl.String,
    "finish_key": pl.String,
    "language_key": pl.String,
    "sealed": pl.Boolean,
}
ROW_KEYS = {name: kind for name, kind in CATALOG_KEYS.items() if name != "set_code_key"} | {
    "set_series": pl.String,
    "alias_key": pl.String,
}
# All products of this game are in one language, even if a condition label implies English.
LANGUAGE_OF_GAME = {"pokemon_japan": "ja"}
# Hiragana, katakana and kanji. A name with any of these is in the game's own script, even if it
# also has Latin letters.
_ITS_SCRIPT = r"[\p{Hiragana}\p{Katakana}\p{Han}]"
# Rows per chunk. Rows are independent of each other, and memory holds the pairs of only one chunk.
_ROWS_AT_ONCE = 100_000


_LANDS = ("plains", "island", "swamp", "mountain", "forest", "wastes")
_FULL_ART = "full art"
_STARRED = ("surge foil", "jp alternate art", "alt art foil")
_MARKED = r"^(.*[0-9])([^0-9]+)$"
# Variants that all cards of a set have, so that they do not distinguish cards.
_OF_THE_SET = ("ce", "ie", "oversize")
# Marks a set whose cards are identified by their names (set_aliases.py).
_BY_NAME = "="
# The beginning of a number that is the code of the reprinted card's set, or a promo's year.
_CODE_OR_YEAR = r"^[A-Z0-9]{2,6}-"


def catalog_keys(products: pl.DataFrame) -> pl.DataFrame:
    """Add CATALOG_KEYS to the columns game, set_name, set_code, product_name, number, rarity,
    finish and language.
    """
    products = products.with_columns(own_printings(products, "finish"))
    finish = pl.col("finish")
    return _keyed(products, ["set_key"], ["name_key", "back_key", "variant_key"]).with_columns(
        set_code_key(pl.col("set_code")).alias("set_code_key"),
        _finish_key(pl.when(finish != SEALED_FINISH).then(finish)),
        _language_key(),
        # Every card has a number or a rarity; a sealed box has neither.
        (
            finish.eq(SEALED_FINISH).fill_null(False)
            | (pl.col("number_key").eq("") & _blank("rarity"))
        ).alias("sealed"),
    )


def row_keys(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ROW_KEYS to the columns game, set_name, product_name, number, condition (the code),
    printing and language. A null printing is unknown; an empty printing is unreadable.
    """
    its_own = pl.col("game").replace_strict(LANGUAGE_OF_GAME, default=None, return_dtype=pl.String)
    implied = its_own.is_not_null() & pl.col("language").eq("English")
    parts = ["name_key", "back_key", "variant_key", "alias_key"]
    return _keyed(rows, ["set_key", "set_series"], parts).with_columns(
        _without_its_number(),
        pl.when(pl.col("printing").is_null())
        .then(pl.lit(NOT_SAID))
        .otherwise(_finish_key(pl.col("printing").cast(pl.String)))
        .alias("finish_key"),
        # A label without a language was read as English, which is wrong for these games.
        pl.when(implied).then(its_own).otherwise(_language_key()).alias("language_key"),
        pl.col("condition").cast(pl.String).eq(SEALED).fill_null(False).alias("sealed"),
    )


def _keyed(frame: pl.DataFrame, of_set: list[str], of_name: list[str]) -> pl.DataFrame:
    numbers = number_columns(frame.get_column("number"))
    names = name_columns(numbers.with_columns(frame.get_column("product_name")))
    sets = set_columns(frame)
    return frame.with_columns(
        *sets.select(of_set).get_columns(),
        *names.select(of_name).get_columns(),
        *numbers.get_columns(),
    )


def _without_its_number() -> pl.Expr:
    """Return the variant without the card's number, which the marketplace adds, such as (H9)."""
    variant, number = pl.col("variant_key"), pl.col("number_key").str.to_lowercase()
    own = (variant != "") & (number != "")
    bare = variant.str.strip_suffix(pl.concat_str(pl.lit(" "), number))
    return (
        pl.when(own & (variant == number))
        .then(pl.lit(""))
        .when(own)
        .then(bare)
        .otherwise(variant)
        .alias("variant_key")
    )


def _blank(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null("").str.strip_chars() == ""


def _finish_key(finish: pl.Expr) -> pl.Expr:
    """Return the finish as a key. Null means that the catalog does not distinguish finishes, or
    that the row's finish is unreadable.
    """
    lower = finish.str.strip_chars().str.to_lowercase()
    return pl.when(lower != "").then(lower).alias("finish_key")


def _language_key() -> pl.Expr:
    lower = pl.col("language").cast(pl.String).str.strip_chars().str.to_lowercase()
    codes = {name.lower(): code for name, code in LANGUAGES.items()}
    return pl.when(lower != "").then(lower.replace(codes)).alias("language_key")


def match(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return `row`, `product_id` (null unless exactly one product matches) and `outcome`
    (matched, ambiguous or unmatched), in the order of `rows`.

    `rows` has `row`, game and ROW_KEYS. `products` has `id`, `marketplace_product_id`, game and
    CATALOG_KEYS, and must contain every set whose `set_key` or `set_code_key` equals a `set_key` or
    `set_series` of the rows in the same game.
    """
    if rows.height > _ROWS_AT_ONCE:
        return pl.concat(match(rows_, products) for rows_ in rows.iter_slices(_ROWS_AT_ONCE))
    return _matched(_resolve_sets(rows.select("row", "game", *ROW_KEYS), products), products)


def explained(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return the result of `match` with the column `reason`: the first part of the row's identity
    with which no product agrees, or null for a matched row.
    """
    rows = _resolve_sets(rows.select("row", "game", *ROW_KEYS), products)
    found = _matched(rows, products)
    reasons = explain_rows(
        rows.join(
            found.filter(pl.col("outcome") == "unmatched"),
            on="row",
            how="semi",
        ),
        products,
    )
    several = pl.when(pl.col("outcome") == "ambiguous").then(pl.lit("several_products"))
    return found.join(reasons, on="row", how="left", maintain_order="left").with_columns(
        pl.coalesce("reason", several).alias("reason")
    )


def _matched(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    verdicts = judge_rows(rows, products)
    left = rows.filter(
        pl.col("alias_key").is_not_null() & pl.col("game").is_in(NUMBER_TELLS_VARIANTS)
    )
    left = left.join(verdicts, on="row", how="anti")
    if left.height:
        # The products are filtered for the few remaining rows, because a join with all products
        # would process the whole catalog once more.
        offered = products.filter(pl.col("name_key").is_in(left["alias_key"].unique().implode()))
        verdicts = pl.concat(
            [verdicts, judge_rows(left.with_columns(name_key="alias_key"), offered)],
        )
    left = rows.join(verdicts, on="row", how="anti")
    if left.height:
        lettered = _with_letter(left)
        if lettered.height:
            verdicts = pl.concat([verdicts, judge_rows(lettered, products)])
            left = left.join(verdicts, on="row", how="anti")
        offered = products.filter(pl.col("name_key").is_in(left["name_key"].unique().implode()))
        found = judge_rows(_with_number(left, offered), offered)
        apart = _in_parts(left.join(found, on="row", how="anti"), products)
        verdicts = pl.concat([verdicts, found, *apart])
        left = left.join(verdicts, on="row", how="anti")
        verdicts = pl.concat([verdicts, *_by_english_names(left, products)])
    doubtful = _told_further(rows, verdicts, products)
    if doubtful.height:
        verdicts = pl.concat([verdicts.join(doubtful, on="row", how="anti"), doubtful])
    found = rows.select("row").join(verdicts, on="row", how="left", maintain_order="left")
    return found.with_columns(pl.col("outcome").fill_null("unmatched"))


def _with_letter(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose variant is a letter, with the letter added to the number: the number
    of "Ineffable Blessing (A)" is 113a, not 113.
    """
    letter = pl.col("variant_key")
    return lines.filter(
        pl.col("game").is_in(NUMBER_TELLS_VARIANTS),
        letter.str.contains("^[a-f]$"),
        pl.col("number_key").str.contains("[0-9]$"),
    ).with_columns(number_key=pl.col("number_key") + letter.str.to_uppercase())


def _told_further(
    rows: pl.DataFrame, verdicts: pl.DataFrame, products: pl.DataFrame
) -> pl.DataFrame:
    """Return new verdicts for the matched rows whose number does not decide the treatment, because
    the catalog also has the card with a suffix of the number: 135 and 135★, 274 and 274a. The
    product with a star is matched by its treatment; with other suffixes, the row is ambiguous.
    """
    variant, land = pl.col("variant_key"), pl.col("name_key").is_in(_LANDS)
    asked = rows.filter(
        pl.col("game").is_in(NUMBER_TELLS_VARIANTS),
        pl.when(variant == "").then(land).otherwise(variant != _FULL_ART),
    )
    if asked.is_empty():
        return verdicts.clear()
    card = ["game", "set_key", "name_key", "number_key"]
    number = pl.col("number_key")
    marked = (
        products.filter(pl.col("name_key").is_in(asked["name_key"].unique().implode()))
        .select(*card[:3], number.str.extract(_MARKED, 1), mark=number.str.extract(_MARKED, 2))
        .drop_nulls("mark")
        .unique()
    )
    if marked.is_empty():
        return verdicts.clear()
    mark = pl.col("mark")
    # The number of a plain land has the suffix "a" if the number without a suffix is the full-art
    # land. "z" marks a card with a serial number, and "b" the second of two cards.
    doubt = (
        pl.when(variant == "")
        .then(mark == "A")
        .otherwise((mark != "B") & ((mark != "Z") | variant.str.contains("serial")))
    )
    own = products.select(product_id="id", its_variant="variant_key", its_number="number_key")
    pairs = (
        asked.join(marked, on=card)
        .filter(doubt)
        .join(verdicts.drop_nulls("product_id"), on="row")
        .join(own, on="product_id")
        .filter(
            number == pl.col("its_number"), (variant == "") | (variant != pl.col("its_variant"))
        )
    )
    starred = pairs.filter(mark == "*", variant.is_in(_STARRED))
    starred = starred.with_columns(number_key=number + "*").select(asked.columns)
    found = judge_rows(starred, products) if starred.height else verdicts.clear()
    tied = pairs.select("row").unique().join(found, on="row", how="anti")
    waits = tied.select(
        "row", product_id=pl.lit(None, verdicts.schema["product_id"]), outcome=pl.lit("ambiguous")
    )
    return pl.concat([found, waits])


def _with_number(lines: pl.DataFrame, products: pl.DataFrame, of: str = "row") -> pl.DataFrame:
    """Return the rows without a number whose product has a number, and the rows with a number whose
    product has none, all with the product's number. (The marketplace has no numbers for old cards.)
    All products with the name, in the sets of all rows with the same `of`, must have the same
    number and the row's variant.
    """
    named = ["game", "set_key", "name_key"]
    offered = products.select(*named, its_number="number_key", its_variant="variant_key").unique()
    card = pl.struct("set_key", "its_number", "its_variant")
    return (
        lines.filter(pl.col("game").is_in(NUMBER_TELLS_VARIANTS), pl.col("name_key") != "")
        .join(offered, on=named)
        .filter(card.n_unique().over(of) == 1)
        .filter(
            (pl.col("number_key") == "") != (pl.col("its_number") == ""),
            (pl.col("variant_key") == pl.col("its_variant"))
            | pl.col("variant_key").is_in(_OF_THE_SET),
        )
        .with_columns(number_key="its_number", number_total=pl.lit(None, pl.String))
        .drop("its_number", "its_variant")
    )


def _lines_in_parts(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return each row once for each part of its set (`set_aliases.py`), if the catalog lacks the
    set, or its cards are identified by name.
    """
    parts = part_columns(rows.select("game", "set_key").unique())
    had = products.select("game", "set_key").unique()
    parts = pl.concat(
        [
            parts.join(had, on=["game", "set_key"], how="anti"),
            parts.join(had, on=["game", "set_key"], how="semi").filter(
                pl.col("part_number") == _BY_NAME
            ),
        ]
    )
    return rows.rename({"row": "of_row"}).join(parts, on=["game", "set_key"])


def _in_parts(rows: pl.DataFrame, products: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the verdicts of rows whose set the catalog divides into parts or numbers differently. A
    row is matched if only one product in all parts fits.
    """
    if rows.is_empty() or (lines := _lines_in_parts(rows, products)).is_empty():
        return
    sign = pl.col("part_number")
    lines = lines.with_row_index("row").with_columns(set_key="part_key")
    offered = products.filter(
        pl.col("set_key").is_in(lines["set_key"].unique().implode())
        & pl.col("name_key").is_in(lines["name_key"].unique().implode())
    )
    by_name = sign == _BY_NAME
    told = lines.filter(by_name).with_columns(number_key=pl.lit(""))
    by_number = lines.filter(~by_name)
    blank = _with_number(by_number.filter(pl.col("number_key") == ""), offered, "of_row")
    signed = pl.col("number_key").str.strip_suffix(sign) + sign
    numbered = by_number.filter(pl.col("number_key") != "").with_columns(
        number_key=pl.when(sign != "-").then(signed).otherwise("number_key")
    )
    bare = offered.with_columns(pl.col("number_key").str.replace(_CODE_OR_YEAR, ""))
    its_numbers = pl.col("number_key").n_unique().over("game", "set_key", "name_key")
    named_once = offered.filter(its_numbers == 1)
    totals = offered.select(product_id="id", of_product="number_total")
    found = (
        pl.concat(
            [
                judge_rows(pl.concat([numbered.filter(sign != "-"), blank]), offered),
                judge_rows(numbered.filter(sign == "-"), bare),
                judge_rows(told, named_once.with_columns(number_key=pl.lit(""))),
            ]
        )
        .join(lines.select("row", "of_row", "number_total"), on="row")
        .join(totals, on="product_id", how="left")
        # In a part of a set, a product with a total matches only a line with the same total.
        .filter(
            pl.col("of_product").is_null() | pl.col("of_product").eq_missing(pl.col("number_total"))
        )
    )
    sole = pl.col("product_id").is_not_null().all() & (pl.col("product_id").n_unique() == 1)
    yield (
        found.group_by(row="of_row")
        .agg(pl.when(sole).then(pl.col("product_id").first()))
        .with_columns(
            outcome=pl.when(pl.col("product_id").is_null())
            .then(pl.lit("ambiguous"))
            .otherwise(pl.lit("matched"))
        )
    )


def by_english_name() -> pl.Expr:
    """Return whether a row of a game whose cards have names in another script has an English name."""
    return pl.col("game").is_in(list(LANGUAGE_OF_GAME)) & ~pl.col("name_key").str.contains(
        _ITS_SCRIPT
    )


def _by_english_names(rows: pl.DataFrame, products: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Match rows with English names in games whose names are in another script. If all products
    with the row's set, number and total have the same name in that script, the row gets that name.
    """
    left = rows.filter(by_english_name() & pl.col("number_total").is_not_null())
    if left.is_empty():
        return
    on = ["game", "set_key", "number_key", "number_total"]
    names = (
        products.filter(
            pl.col("game").is_in(list(LANGUAGE_OF_GAME))
            & pl.col("name_key").str.contains(_ITS_SCRIPT)
        )
        .group_by(on)
        .agg(pl.col("name_key").unique())
        .filter(pl.col("name_key").list.len() == 1)
        .with_columns(pl.col("name_key").list.first())
    )
    yield judge_rows(left.drop("name_key").join(names, on=on), products)


def _resolve_sets(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with other set keys for sets that the catalog lacks: the set with the code
    before the row's set name, if only one set has this code.
    """
    stray = (
        rows.select("game", "set_key", "set_series")
        .filter(pl.col("set_series").is_not_null())
        .unique()
        .join(
            products.select("game", "set_key").unique(),
            on=["game", "set_key"],
            how="anti",
        )
    )
    if stray.is_empty():
        return rows
    coded = (
        products.filter(pl.col("set_code_key").is_not_null())
        .group_by("game", pl.col("set_code_key").alias("set_series"))
        .agg(pl.col("set_key").unique().alias("coded"))
        .filter(pl.col("coded").list.len() == 1)
        .with_columns(pl.col("coded").list.first())
    )
    found = stray.join(coded, on=["game", "set_series"])
    on = ["game", "set_key", "set_series"]
    return (
        rows.join(found, on=on, how="left", maintain_order="left")
        .with_columns(pl.coalesce("coded", "set_key").alias("set_key"))
        .drop("coded")
    )
