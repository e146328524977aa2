"""Writes texts so that no spreadsheet calculates them. Pure.

A spreadsheet calculates a cell that begins with one of a few signs, and may run a buyer's text
there. In every CSV that a person may open, such a text begins with an apostrophe (`safe`). The
marketplace's own files have a fixed form and are left as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Final

import polars as pl

_SIGNS: Final = frozenset("=+-@\u2212")
_LINE_ENDS: Final = ("\t", "\r", "\n")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# Blank letters and symbols; other invisible characters are known by their category: blanks, control
# and format characters, marks. The apostrophe is one of them, so that `as_it_was` is exact.
_UNSEEN: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0'")
_UNSEEN_CATEGORIES: Final = frozenset("ZCM")
_BEGINS_PLAINLY: Final = r"^[0-9A-Za-z]"


def safe(value: Any) -> Any:
    """Return the value; a text that a spreadsheet would calculate begins with an apostrophe."""
    if isinstance(value, str) and _is_calculated(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def as_it_was(text: str) -> str:
    """Return a text that `safe` has changed as it was before."""
    return text[1:] if text.startswith("'") and safe(text[1:]) == text else text


def _is_calculated(text: str) -> bool:
    if text[:1].isascii() and text[:1].isalnum():
        return False
    if text.startswith(_LINE_ENDS):
        return True
    for character in text:
        is_unseen = unicodedata.category(character)[0] in _UNSEEN_CATEGORIES
        if not (is_unseen or character in _UNSEEN):
            # The wide, small and raised forms of a sign are the sign.
            return unicodedata.normalize("NFKC", character)[:1] in _SIGNS
    return False


def safe_texts(frame: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    """Return the frame with these columns of texts as `safe` writes them; where no text changes,
    the same frame.
    """
    changed = []
    for name in columns:
        odd = frame.filter(~pl.col(name).str.contains(_BEGINS_PLAINLY))[name].unique().to_list()
        if safely := {text: safe(text) for text in odd if safe(text) != text}:
            changed.append(pl.col(name).replace(safely))
    return frame.with_columns(changed) if changed else frame
