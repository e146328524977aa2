"""Texts as searches compare them. Pure: a name in; its folded form, its words, and the one text that a card is searched by, out.

Folded: no case, no accents (`Pokémon` is `pokemon`), compatible forms made one. A voiced kana is a letter of its own.
A card's search text is made once, when the card is written: a search compares stored texts, and folds nothing but itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import polars as pl

from cardsync.catalog.collector_number import number_columns

# What normalisation leaves apart although people write both.
_SAME = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "’": "'", "‘": "'", "ʼ": "'"})
_ACCENTS = re.compile("[\u0300-\u036f]")
_CONTROLS = re.compile("[\x00-\x1f\x7f]")
_NO_APOSTROPHES = str.maketrans(dict.fromkeys("'`"))
_ASCII_WORD = re.compile("[a-z0-9]+")

# What parts the fields of a search text. No text holds them: control characters are folded to spaces.
NAME, SET, RARITY, NUMBER, TOTAL = "\x1f", "\x1e", "\x1d", "\x1c", "\x1b"
# A space where no word of the name begins.
_SPACE = "\x1a"


def folded(text: str) -> str:
    if text.isascii():
        return _CONTROLS.sub(" ", text.lower())
    # Twice: what one folding leaves may fall apart again.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()).casefold()
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).translate(_SAME)
    return _CONTROLS.sub(" ", plain)


def words(plain: str) -> list[str]:
    """Of a folded text: cut at everything but letters and digits, apostrophes dropped."""
    plain = plain.translate(_NO_APOSTROPHES)
    if plain.isascii():
        return _ASCII_WORD.findall(plain)
    return "".join(letter if _is_of_word(letter) else " " for letter in plain).split()


def _is_of_word(letter: str) -> bool:
    return letter.isalnum() or unicodedata.category(letter)[0] == "M"


def name_text(name: str) -> str:
    """What bare words and phrases look through: every word behind a space, then the name itself."""
    plain = folded(name).strip(" ")
    return "".join(f" {word}" for word in words(plain)) + NAME + plain


def plain_text(text: str) -> str:
    """A text in which no word of the name is found."""
    return without_spaces(folded(text).strip(" "))


def without_spaces(plain: str) -> str:
    return plain.replace(" ", _SPACE)


def search_text(name: str, set_name: str, rarity: str, number_key: str, number_total: str | None) -> str:
    number = f"{NUMBER}{_CONTROLS.sub('', number_key)}{TOTAL}{_CONTROLS.sub('', number_total or '')}"
    return f"{name_text(name)}{SET}{plain_text(set_name)}{RARITY}{plain_text(rarity)}{number}"


def search_columns(cards: pl.DataFrame) -> pl.DataFrame:
    """`search_text` and `number_leading` (what a number begins with) of product_name, set_name, rarity and number, row for row."""
    number = number_columns(cards["number"])
    key, total = number["number_key"], number["number_total"].fill_null("")
    parts = {
        "name": _each(cards["product_name"], name_text, _ascii_name),
        "set": _each(cards["set_name"], plain_text, _ascii_plain),
        "rarity": _each(cards["rarity"], plain_text, _ascii_plain),
        "key": key.str.replace_all(_CONTROLS.pattern, ""),
        "total": total.str.replace_all(_CONTROLS.pattern, ""),
    }
    whole = pl.format(f"{{}}{SET}{{}}{RARITY}{{}}{NUMBER}{{}}{TOTAL}{{}}", *parts)
    leading = key.str.extract("^([0-9]{1,9})(?:[^0-9]|$)", 1).cast(pl.Int32)
    return pl.DataFrame(parts).select(whole.alias("search_text"), leading.alias("number_leading"))


def _each(texts: pl.Series, one: Callable[[str], str], ascii_ones: Callable[[pl.Expr], pl.Expr]) -> pl.Series:
    """`one` of each text; `ascii_ones` is the same for texts of ASCII alone, all at once."""
    distinct = texts.cast(pl.String).fill_null("").alias("text").to_frame()
    known = distinct.unique()
    is_ascii = pl.col("text").str.len_bytes() == pl.col("text").str.len_chars()
    plain = known.filter(is_ascii).with_columns(ascii_ones(pl.col("text")).alias("made"))
    other = known.filter(~is_ascii)
    other = other.with_columns(pl.Series("made", [one(text) for text in other["text"]], dtype=pl.String))
    return distinct.join(pl.concat([plain, other]), on="text", how="left", maintain_order="left")["made"]


def _ascii_folded(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().str.replace_all(_CONTROLS.pattern, " ").str.strip_chars(" ")


def _ascii_plain(text: pl.Expr) -> pl.Expr:
    return _ascii_folded(text).str.replace_all(" ", _SPACE, literal=True)


def _ascii_name(text: pl.Expr) -> pl.Expr:
    plain = _ascii_folded(text)
    cut = plain.str.replace_all("['`]", "").str.replace_all("[^a-z0-9]+", " ").str.strip_chars(" ")
    return pl.when(cut == "").then(pl.lit("")).otherwise(pl.lit(" ") + cut) + pl.lit(NAME) + plain
