"""Splits a search into chips, and joins chips to a search. Chips are the parts of a search that a
card must all match. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import And, Tree, all_of, print_query


@dataclass(frozen=True)
class Chip:
    """The text of one part of a search, and the text of the search without that part."""

    text: str
    without: str


def chips_of(search: str) -> list[Chip]:
    """Return the chips of a search. A search that selects all cards has no chips. Raises
    QueryError.
    """
    parts = _parts(search)
    return [
        Chip(print_query(part), print_query(all_of([*parts[:place], *parts[place + 1 :]])))
        for place, part in enumerate(parts)
    ]


def query_of(texts: Sequence[str]) -> str:
    """Join the texts of parts to a search. Raises QueryError."""
    return print_query(all_of([parse(text, canonical=True) for text in texts]))


def with_part(search: str, part: str) -> str:
    """Add a part to a search or, if the search already has that part, remove it. Raises
    QueryError.
    """
    parts, more = _parts(search), parse(part, canonical=True)
    kept = [one for one in parts if one != more]
    return print_query(all_of(kept if len(kept) < len(parts) else [*parts, more]))


def _parts(search: str) -> tuple[Tree, ...]:
    tree = parse(search, canonical=True)
    return tree.parts if isinstance(tree, And) else (tree,)
