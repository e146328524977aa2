"""Parses the marketplace's `Condition` labels into a condition code, a printing and a language.
Pure.

The grammar is `<condition>[ <printing>][ - <language>]`, in any case and spacing; the language may
also be before the printing. An unknown printing is returned as text. A label with an unknown
condition or language has the code None, but still has its printing if the printing is known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cardsync.catalog.printings import LONGEST, NORMAL, printing_named, read_printing

if TYPE_CHECKING:
    import polars as pl

CODES = {
    "near mint": "NM",
    "lightly played": "LP",
    "moderately played": "MP",
    "heavily played": "HP",
    "damaged": "DMG",
    "unopened": "U",
}
SEALED = "U"

# The languages of copies as the marketplace names them, with their codes in catalogs.
LANGUAGES = {
    "English": "en",
    "Japanese": "ja",
    "French": "fr",
    "German": "de",
    "Italian": "it",
    "Spanish": "es",
    "Portuguese": "pt",
    "Russian": "ru",
    "Korean": "ko",
    "Chinese": "zh",
    "Chinese (S)": "zhs",
    "Chinese (T)": "zht",
    "Simplified Chinese": "zhs",
    "Traditional Chinese": "zht",
    "Thai": "th",
    "Indonesian": "id",
    "Polish": "pl",
    "Dutch": "nl",
    "Phyrexian": "ph",
    "Hebrew": "he",
    "Latin": "la",
    "Sanskrit": "sa",
    "Ancient Greek": "grc",
    "Arabic": "ar",
    "Quenya": "qya",
}
# The marketplace has no SKUs for these languages, so a printing in one of them is listed without
# the language.
WITHOUT_SKU = ("ph", "he", "la", "sa", "grc", "ar", "qya")
_LANGUAGE_BY_LABEL = {name.lower(): name for name in LANGUAGES}

_LABEL = re.compile(rf"({'|'.join(CODES)})(?: (.+))?", re.ASCII | re.IGNORECASE)
_LANGUAGE = re.compile(
    rf"(.*?) ?[-–—] ?({'|'.join(map(re.escape, sorted(LANGUAGES, key=len, reverse=True)))})( .+)?",
    re.ASCII | re.IGNORECASE,
)
# A dash next to a space precedes a language; a dash between letters is part of a word.
_NO_LANGUAGE = re.compile(r" [-–—]|[-–—](?: |$)")


class Condition(NamedTuple):
    """`printing` is empty if the label has none. `language` is empty if the label names a language
    that is not in LANGUAGES.
    """

    code: str | None
    printing: str
    language: str


def read_condition(text: str | None) -> Condition:
    label, language = _split_language(" ".join((text or "").split()))
    if not language:
        label = _NO_LANGUAGE.split(label, maxsplit=1)[0]
    found = _LABEL.fullmatch(label)
    if found is not None and len(found.group(2) or "") > LONGEST:
        return Condition(None, "", language)
    if found is None or not language:
        said = (found.group(2) if found else label) or ""
        return Condition(None, (said and printing_named(said)) or "", language)
    printing = read_printing(found.group(2)) if found.group(2) else NORMAL
    return Condition(CODES[found.group(1).lower()], printing, language)


def _split_language(label: str) -> tuple[str, str]:
    if found := _LANGUAGE.fullmatch(label):
        before, language, after = found.groups()
        return before + (after or ""), _LANGUAGE_BY_LABEL[language.lower()]
    return label, "" if _NO_LANGUAGE.search(label) else "English"


def condition_columns(labels: pl.Series) -> pl.DataFrame:
    """Return `condition`, `printing` and `language`, row for row.

    A file has few distinct labels, so each label is parsed once.
    """
    # Imported late, because catalog sources use only the constants above and need no polars.
    import polars as pl

    distinct = labels.cast(pl.String).alias("label").unique()
    texts = dict.fromkeys(("condition", "printing", "language"), pl.String)
    read = pl.DataFrame(list(map(read_condition, distinct)), schema=texts, orient="row")
    rows = labels.cast(pl.String).alias("label").to_frame()
    return rows.join(
        read.with_columns(distinct),
        on="label",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).drop("label")
