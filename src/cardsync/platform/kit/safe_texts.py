"""Protects texts from being calculated by a spreadsheet. Pure.

A spreadsheet calculates a cell that begins with one of a few signs, and may run a buyer's text. In
every CSV that a person may open, such a text gets an apostrophe in front (`safe`). The
marketplace's own files have a fixed format and are left unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

import polars as pl

_SIGNS: Final = frozenset("=+-@\u2212")
_LINE_ENDS: Final = ("\t", "\r", "\n")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# Blank letters and symbols. Other invisible characters are recognized by their category: blanks,
# control and format characters, marks. The apostrophe is included, so that `as_it_was` is an exact
# inverse.
_UNSEEN: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0'")
_UNSEEN_CATEGORIES: Final = frozenset("ZCM")
_BEGINS_PLAINLY: Final = r"^[0-9A-Za-z]"


def safe(value: object) -> object:
    """Return the value; a text that a spreadsheet would calculate gets an apostrophe in front."""
    if isinstance(value, str) and _is_calculated(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def as_it_was(text: str) -> str:
    """Undo `safe` on a text."""
    return text[1:] if text.startswith("'") and safe(text[1:]) == text else text


def _is_calculated(text: str) -> bool:
    if text[:1].isascii() and text[:1].isalnum():
        return False
    if text.startswith(_LINE_ENDS):
        return True
    for character in text:
        is_unseen = unicodedata.category(character)[0] in _UNSEEN_CATEGORIES
        if not (is_unseen or character in _UNSEEN):
            # The full-width, small and superscript forms of a sign count as the sign.
            return unicodedata.normalize("NFKC", character)[:1] in _SIGNS
    return False


def safe_texts(frame: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Return the frame with these text columns as `safe` writes them; the same frame if no text
    changes.
    """
    changed = []
    for name in columns:
        odd = frame.filter(~pl.col(name).str.contains(_BEGINS_PLAINLY))[name].unique().to_list()
        if safely := {text: safe(text) for text in odd if safe(text) != text}:
            changed.append(pl.col(name).replace(safely))
    return frame.with_columns(changed) if changed else frame
