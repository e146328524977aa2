"""Decides which product a row of a file is, among the products with the same set, name and number:
those whose variant, printing and language fit. Pure.
"""

from __future__ import annotations

import polars as pl

from cardsync.catalog.condition import WITHOUT_SKU
from cardsync.catalog.printings import base_finishes

# In these games, treatments (Borderless, Showcase, …) have their own collector numbers, and
# catalogs do not name treatments.
NUMBER_TELLS_VARIANTS = ("magic",)
# In these games, cards with the treatments below have their own numbers. Other variants, such as
# Prerelease or Cosmos Holo, have the number of the plain card.
_NUMBER_TELLS_TREATMENTS = ("pokemon", "pokemon_japan")
_TREATMENTS = (
    "(?:texture )?(?:alternate |alternative |alt )?full art",
    "(?:alternate|alternative|alt) art(?: secret)?(?: rare)?",
    "rockets secret machine",
    "(?:rainbow |gold |shiny )?secret(?: rare| shining)?",
    "(?:shiny )?(?:ultra|hyper|rainbow|shiny) rare",
    "(?:special )?(?:illustration|art) rare",
    "character (?:super |holo )?rare",
    "(?:trainer|galarian) gallery",
    "(?:attack|defense|normal|speed) forme",
    "team plasma",
    "ace spec",
    # The persons on supporter cards.
    "professor (?:burnet|juniper|kukui|magnolia|oak|rowan|sada|sycamore|turo)",
    "cyrus|ghetsis|giovanni|lysandre",
    "prime",
    "shiny",
    "special",
    "supporter",
    "top",
    "bottom",
)
# A number before a treatment repeats the card's number.
_TREATMENT = rf"\b(?:[0-9]+ )?(?:{'|'.join(_TREATMENTS)})\b ?"
ENGLISH = "en"
ANY_LANGUAGE = (ENGLISH, *WITHOUT_SKU)
# The `finish_key` of a row without a finish, which means the card's only or base finish.
NOT_SAID = ""
_IDENTITY = ["game", "set_key", "name_key", "number_key"]
_FIELDS = ["back_key", "variant_key", "number_total", "finish_key", "language_key", "sealed"]
# Products with equal values in all of these columns are one card in several finishes.
_OF_CARD = [f"{name}_offered" for name in _FIELDS if name != "finish_key"]


def judge_rows(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return row, product_id and outcome (matched or ambiguous) for each row with fitting products.
    Rows without a fitting product are absent.
    """
    candidates = _candidates(rows, products)
    single = candidates.filter(pl.col("row").is_unique())
    several = _best(candidates.filter(pl.col("row").is_duplicated()))
    matched = pl.concat(
        [single.filter(_variant_allowed()).select("row", "id"), several.select("row", "id")],
    )
    return matched.select(
        "row",
        pl.col("id").alias("product_id"),
        pl.when(pl.col("id").is_null())
        .then(pl.lit("ambiguous"))
        .otherwise(pl.lit("matched"))
        .alias("outcome"),
    )


def _candidates(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of a row and a product that do not contradict each other. Treatments that
    the number distinguishes may differ.
    """
    wanted = rows.filter(pl.col("name_key").is_not_null() & (pl.col("name_key") != ""))
    offered = products.select("id", "marketplace_product_id", *_IDENTITY, *_FIELDS)
    pairs = wanted.select("row", *_IDENTITY, *_FIELDS).join(
        offered,
        on=_IDENTITY,
        suffix="_offered",
    )
    # Treatments are parsed only for pairs with different variants, which are rare.
    fit = pairs.filter(
        _finish_fits()
        & _agree("number_total", optional=True)
        & _agree("back_key", optional=True)
        & language_fits(pl.col("language_key"), pl.col("language_key_offered"))
        & _same("sealed")
    )
    fit = said_or_base(fit, ["row", *_OF_CARD], "finish_key_offered")
    same = fit.filter(_same("variant_key"))
    return pl.concat([same, fit.filter(~_same("variant_key")).filter(_number_tells_variant())])


def _number_tells_variant() -> pl.Expr:
    return strict_variant("variant_key").eq_missing(strict_variant("variant_key_offered"))


def strict_variant(column: str) -> pl.Expr:
    """Return the variant without the treatments that the number distinguishes in the row's game."""
    bare = pl.col(column).str.replace_all(_TREATMENT, "").str.strip_chars()
    return (
        pl.when(pl.col("game").is_in(NUMBER_TELLS_VARIANTS))
        .then(pl.lit(""))
        .when(pl.col("game").is_in(_NUMBER_TELLS_TREATMENTS))
        .then(bare)
        .otherwise(column)
        .alias(column)
    )


def language_fits(copy: pl.Expr, product: pl.Expr) -> pl.Expr:
    """Return whether a copy in this language can be of the product."""
    return product.is_null() | product.is_in(ANY_LANGUAGE) | (copy == product).fill_null(False)


def _same(field: str) -> pl.Expr:
    return pl.col(field).eq_missing(pl.col(f"{field}_offered"))


def _agree(field: str, *, optional: bool) -> pl.Expr:
    """Return whether the field of row and product is equal, or the product lacks it (a catalog may
    not distinguish finishes), or, if `optional`, the row lacks it.
    """
    equal = (pl.col(field) == pl.col(f"{field}_offered")).fill_null(False)
    not_given = pl.col(f"{field}_offered").is_null()
    return equal | not_given | pl.col(field).is_null() if optional else equal | not_given


# Finishes of Pokémon cards with their edition, which products of the first sets have, and the same
# finishes without the edition.
_EDITIONS = {
    "unlimited": "normal",
    "1st edition": "normal",
    "unlimited holofoil": "holofoil",
    "1st edition holofoil": "holofoil",
}


def _finish_fits() -> pl.Expr:
    """Return whether the finishes of row and product fit. The finish "foil" of a row fits every
    foil. A Pokémon row without an edition fits every edition. For Pokémon cards with a pattern,
    holofoil fits reverse holofoil, because sources differ. A row without a finish fits every
    finish.
    """
    row, offered = pl.col("finish_key"), pl.col("finish_key_offered")
    foil = (row == "foil") & offered.str.ends_with("foil")
    holo = ("holofoil", "reverse holofoil")
    patterned = _same("variant_key") & pl.col("variant_key").str.ends_with("pattern")
    of_pokemon = pl.col("game").is_in(_NUMBER_TELLS_TREATMENTS) & (
        without_edition(offered).eq(row) | (patterned & row.is_in(holo) & offered.is_in(holo))
    )
    fits = _agree("finish_key", optional=False) | (foil | of_pokemon).fill_null(False)
    return fits | finish_not_said()


def without_edition(finish: pl.Expr) -> pl.Expr:
    """Return the finish without its edition; null for a finish without an edition."""
    return finish.replace_strict(_EDITIONS, default=None, return_dtype=pl.String)


def finish_not_said() -> pl.Expr:
    return (pl.col("finish_key") == NOT_SAID).fill_null(False)


def said_or_base(pairs: pl.DataFrame, card: list[str], finish: str) -> pl.DataFrame:
    """Return the pairs of rows and products; for a row without a finish, only the pairs with the
    base finish of each card. The columns `card` identify a card.
    """
    unsaid = pairs.filter(finish_not_said())
    if unsaid.is_empty():
        return pairs
    said = pairs.filter(~finish_not_said())
    return pl.concat([said, base_finishes(unsaid, card, finish)])


def _variant_allowed() -> pl.Expr:
    """Return whether the variants are compatible: equal, or only one side has a variant. Two
    different variants are two cards, except in games whose numbers distinguish treatments.
    """
    return (
        _same("variant_key")
        | (pl.col("variant_key") == "")
        | (pl.col("variant_key_offered") == "")
        | pl.col("game").is_in(_NUMBER_TELLS_TREATMENTS)
    )


def _best(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the nearest candidate of each row as `row` and `id`; the id is null if the nearest
    candidates are different cards.
    """
    spoken = _same("language_key")
    candidates = candidates.filter(spoken | ~spoken.any().over("row"))
    exactness = (
        8 * _same("variant_key").cast(pl.Int8)
        + 4 * _same("number_total").cast(pl.Int8)
        + 2 * _same("back_key").cast(pl.Int8)
        + _same("finish_key").cast(pl.Int8)
    )
    # If no candidate has the row's variant, and the candidates' variants differ, the number does
    # not identify one card, so all candidates remain.
    settled = (pl.col("exactness").max().over("row") >= 8) | (
        pl.col("variant_key_offered").n_unique().over("row") == 1
    )
    nearest = candidates.with_columns(exactness.alias("exactness")).filter(
        ~settled | (pl.col("exactness") == pl.col("exactness").max().over("row"))
    )
    card = pl.struct(
        f"{field}_offered" for field in ("back_key", "variant_key", "number_total", "finish_key")
    )
    listing = pl.col("marketplace_product_id")
    # Products of one marketplace listing are the same card only if they have the same finish,
    # because a listing may have several finishes.
    one_finish = pl.col("finish_key_offered").drop_nulls().n_unique() <= 1
    same_listing = listing.is_not_null().all() & (listing.n_unique() == 1) & one_finish
    same_card = (card.n_unique() == 1) & (listing.drop_nulls().n_unique() <= 1)
    return (
        nearest.group_by("row")
        .agg(
            (same_listing | same_card).alias("one"),
            _variant_allowed().all().alias("allowed"),
            pl.col("id").min(),
        )
        .filter(pl.col("allowed") | ~pl.col("one"))
        .select("row", pl.when("one").then("id").alias("id"))
    )


def explain_rows(rows: pl.DataFrame, products: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `reason` for rows that match no product."""
    left = rows.select("row", *_IDENTITY, *_FIELDS)
    found: list[pl.DataFrame] = []
    for reason, known in (
        ("set_unknown", ["game", "set_key"]),
        ("name_unknown", ["game", "set_key", "name_key"]),
        ("number_differs", _IDENTITY),
    ):
        found.append(
            left.join(products, on=known, how="anti").select("row", pl.lit(reason).alias("reason")),
        )
        left = left.join(products, on=known, how="semi")
    pairs = left.join(
        products.select(*_IDENTITY, *_FIELDS),
        on=_IDENTITY,
        suffix="_offered",
    )
    numbered = (
        _agree("number_total", optional=True) & _agree("back_key", optional=True) & _same("sealed")
    )
    told = _number_tells_variant() & _variant_allowed()
    varied = numbered & (_same("variant_key") | told)
    spoken = varied & language_fits(pl.col("language_key"), pl.col("language_key_offered"))
    found.append(
        pairs.group_by("row").agg(
            pl.when(~numbered.any())
            .then(pl.lit("number_differs"))
            .when(~varied.any())
            .then(pl.lit("variant_unknown"))
            .when(~spoken.any())
            .then(pl.lit("language_unknown"))
            .otherwise(pl.lit("printing_unknown"))
            .alias("reason")
        )
    )
    return pl.concat(found).select("row", "reason")
