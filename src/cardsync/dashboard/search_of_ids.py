"""Writes the ids of ticked cards as a search, for the pages that begin with a search. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# A search may have at most 200 values, and the shop may add terms to it.
TICKED_MOST: Final = 150


def search_of_ids(ids: Sequence[int]) -> str:
    """Return the search for these cards, up to the number of cards that a search may name; empty if
    there are none.
    """
    return f"id:{'|'.join(map(str, ids[:TICKED_MOST]))}" if ids else ""
