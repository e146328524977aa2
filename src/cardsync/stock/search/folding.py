"""Folds names to the form that searches compare, splits them into words, and builds a card's search
text. Pure.

A folded text is in lower case without accents (`Pokémon` is `pokemon`), and different forms of a
letter, such as full-width forms, are the same. Voiced and unvoiced kana remain different letters. A
card's search text is built and stored when the card is written, so that a search folds only its own
words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import polars as pl

from cardsync.catalog.collector_number import number_columns
from cardsync.platform.texts import apart, is_ascii, spaced, stripped, table, together, words_table

# Unicode normalization does not replace these letters, although people write both forms.
_SAME = str.maketrans(
    {
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "’": "'",
        "‘": "'",
        "ʼ": "'",
    }
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_CONTROLS = re.compile("[\x00-\x1f\x7f]")
_NO_APOSTROPHES = str.maketrans(dict.fromkeys("'`"))
_ASCII_WORD = re.compile("[a-z0-9]+")
# Each of these characters precedes one field of a search text. No field contains them, because
# folding replaces control characters by spaces.
NAME = "\x1f"
SET = "\x1e"
RARITY = "\x1d"
NUMBER = "\x1c"
TOTAL = "\x1b"
# This character replaces spaces in all fields except the name, because a search for a word of the
# name looks for a space and the word.
_SPACE = "\x1a"


def folded(text: str) -> str:
    if text.isascii():
        return _CONTROLS.sub(" ", text.lower())
    # The text is normalized and case-folded twice, because the result of one folding may decompose
    # again.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()).casefold()
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).translate(_SAME)
    return _CONTROLS.sub(" ", plain)


def words(plain: str) -> list[str]:
    """Split a folded text at each character that is no letter or digit; apostrophes are removed."""
    plain = plain.translate(_NO_APOSTROPHES)
    if plain.isascii():
        return _ASCII_WORD.findall(plain)
    return "".join(letter if _is_of_word(letter) else " " for letter in plain).split()


def _is_of_word(letter: str) -> bool:
    return letter.isalnum() or unicodedata.category(letter)[0] == "M"


def is_punctuation(text: str) -> bool:
    """Return whether the text has no letters, digits, marks or pictures such as ♀."""
    if text.isascii():
        return not any(map(str.isalnum, text))
    kinds = set(map(unicodedata.category, text.translate(_TRADEMARKS)))
    return "So" not in kinds and {kind[0] for kind in kinds} <= set("PSZC")


def pictures(text: str) -> str:
    """Return the pictures in a text, such as ♀."""
    return "".join(letter for letter in text if unicodedata.category(letter) == "So")


_TRADEMARKS = str.maketrans(dict.fromkeys("™®©℠", ""))
# The marketplace's spelling of characters that other sources use: words or nothing.
_SPELLED = str.maketrans(
    {
        "♀": " f ",
        "♂": " m ",
        "☆": " star ",
        "★": " star ",
        "◇": " prism star ",
        "♢": " prism star ",
        "δ": " delta species ",
        "Δ": " delta species ",
        **dict.fromkeys("´′ʹ‵‛ˈ", "'"),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
    | _TRADEMARKS
)


def spellings(text: str) -> list[str]:
    """Return the folded text and, if it differs, the folded text in the marketplace's spelling."""
    spelled = folded(text.translate(_SPELLED))
    return list(dict.fromkeys([folded(text), spelled] if spelled.strip() else [folded(text)]))


# Names and sets repeat within an upload, so the results are cached.
@lru_cache(maxsize=8192)
def name_text(name: str) -> str:
    """Return the part of a search text that words and phrases are compared with: each word of the
    name after a space, then the whole name.
    """
    plain = folded(name).strip(" ")
    return "".join(f" {word}" for word in words(plain)) + NAME + plain


@lru_cache(maxsize=8192)
def plain_text(text: str) -> str:
    """Fold a text and replace its spaces, so that a search for words of the name does not match
    it.
    """
    return without_spaces(folded(text).strip(" "))


def without_spaces(plain: str) -> str:
    return plain.replace(" ", _SPACE)


def search_text(
    name: str,
    set_name: str,
    rarity: str,
    number_key: str,
    number_total: str | None,
) -> str:
    number = (
        f"{NUMBER}{_CONTROLS.sub('', number_key)}{TOTAL}{_CONTROLS.sub('', number_total or '')}"
    )
    return f"{name_text(name)}{SET}{plain_text(set_name)}{RARITY}{plain_text(rarity)}{number}"


def search_columns(cards: pl.DataFrame) -> pl.DataFrame:
    """Return the columns `search_text` and `number_leading` (the number at the beginning of a
    collector number) for rows of product_name, set_name, rarity and number.

    Rows with the columns `number_key` and `number_total` need no column `number`.
    """
    number = cards if "number_key" in cards.columns else number_columns(cards["number"])
    key = number["number_key"]
    total = number["number_total"].fill_null("")
    parts = {
        "name": _of_distinct(cards["product_name"], name_text, _ascii_names),
        "set": _of_distinct(cards["set_name"], plain_text, _ascii_plain),
        "rarity": _of_distinct(cards["rarity"], plain_text, _ascii_plain),
        "key": key.str.replace_all(_CONTROLS.pattern, ""),
        "total": total.str.replace_all(_CONTROLS.pattern, ""),
    }
    whole = pl.format(f"{{}}{SET}{{}}{RARITY}{{}}{NUMBER}{{}}{TOTAL}{{}}", *parts)
    leading = key.str.extract("^([0-9]{1,9})(?:[^0-9]|$)", 1).cast(pl.Int32)
    return pl.DataFrame(parts).select(whole.alias("search_text"), leading.alias("number_leading"))


def _of_distinct(
    texts: pl.Series,
    one: Callable[[str], str],
    ascii_ones: Callable[[bytes], pl.Series],
) -> pl.Series:
    """Apply `_each` to texts that repeat, once per distinct text."""
    known = texts.unique(maintain_order=True)
    made = pl.DataFrame(
        {
            "text": known,
            "made": _each(known, one, ascii_ones),
        }
    )
    rows = texts.rename("text").to_frame()
    return rows.join(
        made,
        on="text",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["made"]


def _each(
    texts: pl.Series,
    one: Callable[[str], str],
    ascii_ones: Callable[[bytes], pl.Series],
) -> pl.Series:
    """Convert the texts by `ascii_ones`, which converts all ASCII texts in one call, and by `one`,
    which converts one other text. A null counts as an empty text.
    """
    texts = texts.cast(pl.String).fill_null("")
    if texts.is_empty():
        return texts
    foreign = ~is_ascii(texts)
    made = ascii_ones(together(texts.set(foreign, "")))
    others = texts.filter(foreign)
    if others.is_empty():
        return made
    return made.scatter(foreign.arg_true(), list(map(one, others.to_list())))


_FOLDED: Final = table(
    {byte: 32 if byte < 32 or byte == 127 else ord(chr(byte).lower()) for byte in range(128)}
)
_WORDS: Final = words_table()


def _ascii_folded(texts: bytes) -> bytes:
    return stripped(texts.translate(_FOLDED))


def _ascii_plain(texts: bytes) -> pl.Series:
    return apart(_ascii_folded(texts).replace(b" ", _SPACE.encode()))


def _ascii_names(texts: bytes) -> pl.Series:
    plain = _ascii_folded(texts)
    cut = spaced(plain.translate(_WORDS, b"'`"))
    name = pl.DataFrame({"cut": apart(cut), "plain": apart(plain)})
    before = pl.when(pl.col("cut") == "").then(pl.lit("")).otherwise(pl.lit(" "))
    return name.select(pl.concat_str(before, "cut", pl.lit(NAME), "plain")).to_series()


def holding(plain: str) -> str:
    """Return the LIKE pattern that matches search texts whose name contains this text."""
    return f"%{NAME}%{escaped_for_like(plain)}%{SET}%"


def escaped_for_like(text: str) -> str:
    """Escape a text for LIKE, so that `%` and `_` match only themselves."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
