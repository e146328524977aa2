"""Splits product names into comparable parts: the front face, the back face and the variant. Pure.

Example: `Snivy - 001/086 (Master Ball Pattern)` with the number `001/086` has the name_key "snivy"
and the variant_key "master ball pattern". Each distinct name is split once: an export of 300,000
rows has some ten thousand names.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from cardsync.catalog.collector_number import number_columns
from cardsync.platform.texts import apart, is_ascii, spaced, together, words_table

_OPENS = "[(（]"
_NUMBER = r"#?([^\s/()（）\[\]]+/[^\s/()（）\[\]]+)"
_PLAIN_NUMBER = r"#?([A-Za-z]*[0-9][A-Za-z0-9]*[*★+]?)"
# A number after a dash at the end of a name. A number without the set's total counts only if the
# dash has spaces around it, because "Porygon-2" is a name.
_SUFFIX = rf"(?:\s*-\s*{_NUMBER}|\s+-\s+{_PLAIN_NUMBER})\s*($|{_OPENS}|\[)"
_BRACKETED_NUMBER = r"[(（]#?([0-9]+[A-Za-z]?)[)）]"

_APOSTROPHES = r"['’‘ʼ`´.]"
_LATIN_MARKS = r"[\x{0300}-\x{036F}]"
# Letters, digits, marks (such as kana voicing) and symbols such as ★ are kept; any other character
# separates words.
_SEPARATORS = r"[^\p{L}\p{N}\p{M}\p{So}]+"
# Spellings of the same letter or sign that Unicode normalization does not unify.
SAME: Final = {
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "ß": "ss",
    "ł": "l",
    "đ": "d",
    "ς": "σ",
    "&": " and ",
    "♀": " f ",
    "♂": " m ",
    "☆": " star ",
    "★": " star ",
    "◇": " prism star ",
    "♢": " prism star ",
}
# Matches the beginning of any part after the front face, in an ASCII name.
_PARTED = r"[(/]|\s-\s|\[Version "
_WORDS: Final = words_table("&")


def folded(text: pl.Expr) -> pl.Expr:
    """Return the words in lower case, joined by single spaces, without accents, apostrophes or
    punctuation. Kana keep their voicing.
    """
    plain = text.str.replace_all(_APOSTROPHES, "").str.normalize("NFKD").str.to_lowercase()
    # Compose the text again, because a voiced kana is its own letter and not an accented one.
    plain = plain.str.replace_all(_LATIN_MARKS, "").str.normalize("NFC")
    plain = plain.str.replace_many(list(SAME), list(SAME.values()))
    return plain.str.replace_all(_SEPARATORS, " ").str.strip_chars(" ")


def key(text: pl.Expr) -> pl.Expr:
    """Return the folded text. A name of only punctuation is unchanged, so that different names of
    punctuation remain different.
    """
    plain = folded(text)
    return pl.when(plain == "").then(text.str.strip_chars()).otherwise(plain)


def name_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `name_key`, `back_key`, `variant_key` and `alias_key` for `product_name`,
    `number_key` and `number_total`, row for row.
    """
    titles = rows.select(_title(rows))
    parts = _parts(titles.unique())
    return titles.join(parts, on="title", how="left", maintain_order="left").drop("title")


def _title(rows: pl.DataFrame) -> pl.Series:
    """Return the names without the row's number; another number remains in the name."""
    name = rows.get_column("product_name").cast(pl.String).fill_null("").alias("title")
    numbered = _numbered(name.unique())
    if numbered.is_empty():
        return name
    suffix_agrees = pl.col("suffix").is_null() | (
        (pl.col("suffix") == pl.col("number_key"))
        & pl.col("suffix_total").eq(pl.col("number_total")).fill_null(True)
    )
    bracketed_agrees = pl.col("bracketed").is_null() | (pl.col("bracketed") == pl.col("number_key"))
    return (
        rows.select(name, "number_key", "number_total")
        .join(numbered, on="title", how="left", maintain_order="left")
        .select(
            pl.when(suffix_agrees & bracketed_agrees)
            .then(pl.coalesce("bare", "title"))
            .otherwise("title")
        )
        .to_series()
        .alias("title")
    )


def _numbered(names: pl.Series) -> pl.DataFrame:
    """Return the names that contain a number, with the number in its comparable form and the name
    without it.
    """
    title = pl.col("title")
    found = (
        names.alias("title")
        .to_frame()
        .filter(title.str.contains(r"[0-9]") & title.str.contains(r"[-(（]"))
        .with_columns(
            pl.coalesce(title.str.extract(_SUFFIX, 1), title.str.extract(_SUFFIX, 2)).alias(
                "suffix"
            ),
            title.str.extract(_BRACKETED_NUMBER, 1).alias("bracketed"),
            title.str.replace(_SUFFIX, " ${3}")
            .str.replace(_BRACKETED_NUMBER, "")
            .str.strip_chars()
            .alias("bare"),
        )
        .filter(
            (pl.col("suffix").is_not_null() | pl.col("bracketed").is_not_null())
            & (pl.col("bare") != "")
        )
    )
    suffixes = number_columns(found.get_column("suffix"))
    return found.with_columns(
        pl.when(pl.col("suffix").is_not_null())
        .then(suffixes.get_column("number_key"))
        .alias("suffix"),
        suffixes.get_column("number_total").alias("suffix_total"),
        number_columns(found.get_column("bracketed"))
        .get_column("number_key")
        .alias("bracketed_key"),
    ).select(
        "title",
        "bare",
        "suffix",
        "suffix_total",
        pl.when(pl.col("bracketed").is_not_null()).then("bracketed_key").alias("bracketed"),
    )


def _parts(titles: pl.DataFrame) -> pl.DataFrame:
    """Return the parts of each distinct title. The variant is everything from the first parenthesis
    on.
    """
    title = titles["title"]
    plain = is_ascii(title) & ~title.str.contains(_PARTED)
    nothing = pl.lit(None, pl.String)
    return pl.concat(
        [
            titles.filter(plain).select(
                "title",
                name_key=_ascii_keys(title.filter(plain)),
                back_key=nothing,
                variant_key=pl.lit(""),
                alias_key=nothing,
            ),
            _parted(titles.filter(~plain)),
        ]
    )


def _ascii_keys(texts: pl.Series) -> pl.Series:
    """Return `key` of ASCII texts."""
    words = together(texts).translate(_WORDS, b"'`.").replace(b"&", b" and ")
    folded_ones = apart(spaced(words)).head(texts.len())
    return folded_ones.zip_with(folded_ones != "", texts.str.strip_chars())


def _parted(titles: pl.DataFrame) -> pl.DataFrame:
    # The order of a variant's words is kept, because a catalog has "(Staff) (National
    # Championships)" and the reverse order as two products. The marketplace writes "Kingdra (Delta
    # Species)", other sources write "Kingdra δ".
    spelled = pl.col("title").str.replace(r"\s*[δΔ]", " (Delta Species)")
    # "Forest (274) - Full Art" and "Carapace [Version 2]" have a variant without parentheses.
    spelled = spelled.str.replace(r"\s+-\s+(Full Art)$", " (${1})")
    spelled = spelled.str.replace(r"\s*\[(Version [0-9]+)\]$", " (${1})")
    faces = pl.col("base").str.splitn(" // ", 2)
    split = titles.with_columns(
        spelled.str.extract(r"^(\s*[^(（\s][^(（]*)", 1).fill_null(spelled).alias("base"),
        spelled.str.extract(rf"^\s*[^(（\s][^(（]*({_OPENS}.*)$", 1).alias("variant"),
    )
    return split.select(
        "title",
        key(faces.struct.field("field_0")).alias("name_key"),
        key(faces.struct.field("field_1")).alias("back_key"),
        folded(pl.col("variant")).fill_null("").alias("variant_key"),
        # The alias of "Endwalker - Brainstorm" is "Brainstorm", the name in the rules. The alias of
        # "Fire/Ice" is "Fire", the front face.
        key(
            pl.coalesce(
                faces.struct.field("field_0").str.extract(r"^.*\S\s+-\s+(\S.*)$", 1),
                faces.struct.field("field_0").str.extract(r"^(.*?\pL)\s*//?\s*\pL", 1),
            )
        ).alias("alias_key"),
    )
