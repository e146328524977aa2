"""Computes the keys of a single inventory row, for a page of one card. `match.row_keys` does the
same for columns and takes much longer for one row. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cardsync.catalog.collector_number import read_collector_number
from cardsync.catalog.condition import LANGUAGES
from cardsync.catalog.judge_products import NOT_SAID
from cardsync.catalog.match import LANGUAGE_OF_GAME
from cardsync.catalog.one_name import name_parts
from cardsync.catalog.set_names import set_key_of

_CODES: Final = {name.lower(): code for name, code in LANGUAGES.items()}


def keys_of_row(row: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the game and the keys of a row with `products.ROW_COLUMNS` and `title`; a null
    printing is unknown.
    """
    game, title = row["product_line"], row["title"]
    name = row["product_name"] or ""
    # A custom listing is named "<catalog name>: <title>".
    parts_of = name.removesuffix(f": {title}") if title else name
    number = read_collector_number(row["number"])
    parts = name_parts(parts_of, number)
    printing = row["printing"]
    return {
        "game": game,
        "set_key": set_key_of(game, row["set_name"] or ""),
        "name_key": parts.name_key,
        "back_key": parts.back_key,
        "variant_key": _without_number(parts.variant_key, number.key.lower()),
        "number_key": number.key,
        "number_total": number.total,
        "finish_key": NOT_SAID if printing is None else printing.strip().lower() or None,
        "language_key": _language_key(game, row["language"]),
    }


def _without_number(variant: str, number: str) -> str:
    """Return the variant without the card's number, which the marketplace adds, such as (H9)."""
    if not number:
        return variant
    return "" if variant == number else variant.removesuffix(f" {number}")


def _language_key(game: str | None, language: str | None) -> str | None:
    # A label without a language was read as English, which is wrong for these games.
    if language == "English" and game in LANGUAGE_OF_GAME:
        return LANGUAGE_OF_GAME[game]
    lower = (language or "").strip().lower()
    return _CODES.get(lower, lower) or None
