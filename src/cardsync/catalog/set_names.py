"""Makes one comparable `set_key` of the names that the marketplace and catalogs give a set. Pure.

The key is the set's words, folded and sorted ("Commander: FINAL FANTASY" = "Final Fantasy
Commander"), without the series code in front of them ("ME05: Pitch Black"). Names that differ by
more than that have an alias.
"""

from __future__ import annotations

import re

import polars as pl

from cardsync.catalog.product_names import folded

# The code is "SWSH07: ", "SM - ", "SV8a: " or "CRZ: "; only Pokemon sets carry one.
_SERIES = r"^([A-Z]{1,4}[0-9]{0,2}[A-Za-z]?)(?:: | - )\S"
_SERIES_GAMES = ("pokemon", "pokemon_japan")
_CORE_SET_CODE = r"\s*\((?:M[0-9]{2}|[0-9]?[A-Z]{2,3})\)$"

# Names are folded: on the left as some source writes them, on the right as the marketplace does
# (for Magic: as the commoner catalog does).
_POKEMON = {
    "151": "scarlet and violet 151",
    "best of game": "best of promos",
    "bw black star promos": "black and white promos",
    "dp black star promos": "diamond and pearl promos",
    "expedition base set": "expedition",
    "hgss black star promos": "hgss promos",
    "mega evolution energy": "mega evolution energies",
    "mep black star promos": "mega evolution promo",
    "nintendo black star promos": "nintendo promos",
    "pokemon rumble": "rumble",
    "scarlet and violet": "scarlet and violet base set",
    "scarlet and violet energy": "scarlet and violet energies",
    "sm black star promos": "sm promos",
    "sun and moon": "sm base set",
    "svp black star promos": "scarlet and violet promo cards",
    "sword and shield": "sword and shield base set",
    "swsh black star promos": "sword and shield promo cards",
    "wizards black star promos": "wotc promo",
    "xy": "xy base set",
    "xy black star promos": "xy promos",
    "mcdonalds collection 2021": "mcdonalds 25th anniversary promos",
}
_MAGIC = {
    "8th edition": "eighth edition",
    "9th edition": "ninth edition",
    "10th edition": "tenth edition",
    "alpha edition": "limited edition alpha",
    "beta edition": "limited edition beta",
    "commander": "commander 2011",
    "commander adventures in the forgotten realms": "forgotten realms commander",
    "commander innistrad crimson vow": "crimson vow commander",
    "commander innistrad midnight hunt": "midnight hunt commander",
    "commander kamigawa neon dynasty": "neon dynasty commander",
    "commander streets of new capenna": "new capenna commander",
    "commander the lord of the rings tales of middle earth": "tales of middle earth commander",
    "march of the machine multiverse legends": "multiverse legends",
    "masterpiece series amonkhet invocations": "amonkhet invocations",
    "masterpiece series kaladesh inventions": "kaladesh inventions",
    "outlaws of thunder junction breaking news": "breaking news",
    "outlaws of thunder junction the big score": "the big score",
    "ravnica": "ravnica city of guilds",
    "secret lair drop series": "secret lair drop",
    "strixhaven mystical archives": "strixhaven mystical archive",
    "the brothers war retro frame artifacts": "the brothers war retro artifacts",
    "timeshifted": "time spiral timeshifted",
    "warhammer 40 000": "warhammer 40 000 commander",
}


def set_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `set_key` and `set_series` (the code in front of the name, if it has one) for `game`
    and `set_name`, row for row.
    """
    names = rows.select(pl.col("game").cast(pl.String), pl.col("set_name").cast(pl.String))
    in_series = pl.col("game").is_in(_SERIES_GAMES)
    distinct = names.unique().with_columns(
        pl.when(in_series).then(pl.col("set_name").str.extract(_SERIES, 1)).alias("series")
    )
    bare = pl.col("set_name").fill_null("").str.strip_prefix(pl.col("series").fill_null(""))
    plain = distinct.select(
        "game",
        "set_name",
        "series",
        folded(bare.str.replace(_CORE_SET_CODE, "")).alias("words"),
    )
    keys = [set_key(game, words) for game, words in plain.select("game", "words").iter_rows()]
    table = plain.select(
        "game",
        "set_name",
        pl.Series("set_key", keys, dtype=pl.String),
        set_code_key(pl.col("series")).alias("set_series"),
    )
    on = ["game", "set_name"]
    return names.join(
        table,
        on=on,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).drop(on)


def set_key(game: str | None, words: str) -> str:
    """Return the key of an already folded set name."""
    if game == "magic":
        words = words.removeprefix("universes beyond ")
        words = re.sub(r"\beternal legal$", "eternal", words)
        words = _MAGIC.get(words, words)
    elif game == "pokemon":
        words = re.sub(r"^ex (?!trainer|battle)", "", words)
        words = re.sub(r"^mcdonalds collection (?!2021)", "mcdonalds promos ", words)
        words = _POKEMON.get(words, words)
    return " ".join(sorted(words.split()))


def set_code_key(code: pl.Expr) -> pl.Expr:
    """Return a set code if it may be used for the set.

    A code without a digit may not: "SV" is a series and Supreme Victors.
    """
    lower = code.cast(pl.String).str.strip_chars().str.to_lowercase()
    return pl.when(lower.str.contains(r"[0-9]")).then(lower)
