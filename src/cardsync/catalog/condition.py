"""Reads the marketplace's `Condition` labels into a condition code, a printing and a language.
Pure.

The grammar is `<condition>[ <edition>][ <finish>][ - <language>]`, in any case and spacing. A label
that does not follow it to the last word is unreadable: its code is None and its printing empty,
because half a label is not evidence for a whole one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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

PRINTINGS = (
    "Normal",
    "Foil",
    "Holofoil",
    "Reverse Holofoil",
    "1st Edition",
    "1st Edition Holofoil",
    "Unlimited",
    "Unlimited Holofoil",
    "Limited",
)
_PRINTING_BY_SUFFIX = {"": "Normal"} | {name.lower(): name for name in PRINTINGS[1:]}

# The languages of copies, with the code that catalogs write instead.
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
}
# No SKU of the marketplace has these: a printing in one is listed like any other.
WITHOUT_SKU = ("ph", "he", "la", "sa", "grc", "ar")
_LANGUAGE_BY_LABEL = {name.lower(): name for name in LANGUAGES}

_LABEL = re.compile(rf"({'|'.join(CODES)})(?: (.+))?")
_LANGUAGE = re.compile(r" ?[-–] ?")


class Condition(NamedTuple):
    """`printing` is empty when the label is unreadable; `language` is empty when the label names
    a language that is not in LANGUAGES.
    """

    code: str | None
    printing: str
    language: str
    readable: bool


def read_condition(text: str | None) -> Condition:
    label, dash, named = _split_language(" ".join((text or "").lower().split()))
    language = _LANGUAGE_BY_LABEL.get(named, "") if dash else "English"
    found = _LABEL.fullmatch(label)
    printing = _PRINTING_BY_SUFFIX.get(found.group(2) or "") if found else None
    if found is None or printing is None or not language:
        return Condition(None, "", language, False)
    return Condition(CODES[found.group(1)], printing, language, True)


def _split_language(label: str) -> tuple[str, bool, str]:
    dash = _LANGUAGE.search(label)
    if dash is None:
        return label, False, ""
    return label[: dash.start()], True, label[dash.end() :]


def condition_columns(labels: pl.Series) -> pl.DataFrame:
    """Return `condition`, `printing`, `language` and `condition_readable`, row for row.

    A file has few distinct labels, so each label is parsed once.
    """
    distinct = labels.cast(pl.String).unique()
    read = [read_condition(label) for label in distinct]
    table = pl.DataFrame(
        {
            "label": distinct,
            "condition": pl.Series([found.code for found in read], dtype=pl.String),
            "printing": pl.Series([found.printing for found in read], dtype=pl.String),
            "language": pl.Series([found.language for found in read], dtype=pl.String),
            "condition_readable": pl.Series([found.readable for found in read], dtype=pl.Boolean),
        }
    )
    rows = labels.cast(pl.String).alias("label").to_frame()
    return rows.join(
        table,
        on="label",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).drop("label")
