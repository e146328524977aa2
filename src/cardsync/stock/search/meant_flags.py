"""Suggests a field for a flag or a condition that a member wrote as a plain word: in `foil
price>20` the word `foil` searches for cards named Foil. Pure.
"""

from __future__ import annotations

from typing import Final

from cardsync.stock.search.fields import CONDITIONS, FLAGS, QueryError
from cardsync.stock.search.folding import folded
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import And, Not, Or, Tree, WordTerm, print_query

_MEANT: Final = {
    **{folded(name): f"is:{name}" for name in FLAGS},
    **{folded(name): f"cond:{name}" for name in CONDITIONS if name != "U"},
    "foils": "is:foil",
}


def meant(search: str) -> str:
    """Return the search with such words replaced by fields, or an empty text if it has no such
    words or cannot be parsed.
    """
    try:
        was = parse(search, canonical=True)
    except QueryError:
        return ""
    became = _meant(was)
    return "" if became == was else print_query(became)


def _meant(tree: Tree) -> Tree:
    match tree:
        case WordTerm(text) if (name := _MEANT.get(folded(text))) is not None:
            return parse(name, canonical=True)
        case Not(part):
            return Not(_meant(part))
        case And(parts):
            return And(tuple(map(_meant, parts)))
        case Or(parts):
            return Or(tuple(map(_meant, parts)))
    return tree
