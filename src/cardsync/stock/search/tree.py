"""Defines the tree of a search, which the parser builds. `print_query` returns its canonical text,
for which `parse(print_query(tree)) == tree`. Pure.

The field `at` of a node is the offset of its part in the text. Trees that differ only in offsets
are equal.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from cardsync.platform.shelf_place import Place
from cardsync.stock.search.folding import folded
from cardsync.stock.search.variants import SELECTOR_BEGINNINGS


class Range(NamedTuple):
    """A range includes both ends; None is an open end."""

    low: Decimal | None
    high: Decimal | None


class Named(NamedTuple):
    """The name of a list or rule in a search that does not use the list's slug or the rule's id."""

    name: str


Value: TypeAlias = str | Decimal | Range | Named | Place


@dataclass(frozen=True, slots=True)
class WordTerm:
    """A word of a search. A card matches if each part of the text is the beginning of a word of the
    product name.
    """

    text: str
    at: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A text in quotes. A card matches if the product name contains the text."""

    text: str
    at: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Term:
    """A comparison of a field. A card matches if any of the values matches or, with `!=`, if none
    of the values matches.
    """

    field: str
    op: str
    values: tuple[Value, ...]
    at: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    part: Tree
    at: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """A search whose parts must all match. An And without parts selects all cards. `all_of` builds
    And nodes, so that no And has an And as a part.
    """

    parts: tuple[Tree, ...]
    at: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Tree, ...]
    at: int = dataclasses.field(default=0, compare=False)


Tree: TypeAlias = WordTerm | Phrase | Term | Not | And | Or
EVERYTHING = And(())


def all_of(parts: Iterable[Tree], at: int = 0) -> Tree:
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat), at)


def any_of(parts: Iterable[Tree], at: int = 0) -> Tree:
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat), at)


def terms(tree: Tree) -> Iterator[Term]:
    """Yield all comparisons in the tree."""
    match tree:
        case Term():
            yield tree
        case Not():
            yield from terms(tree.part)
        case And() | Or():
            for part in tree.parts:
                yield from terms(part)


# The flags that select cards that are gone.
GONE_FLAGS: Final = frozenset({"gone", "dropped"})


def asks_for_gone(tree: Tree) -> bool:
    """Return whether the tree has one of GONE_FLAGS outside a negation."""
    match tree:
        case Term(field="is"):
            return not GONE_FLAGS.isdisjoint(tree.values)
        case And() | Or():
            return any(asks_for_gone(part) for part in tree.parts)
    return False


# The shortest names of fields, which the canonical text uses.
_SHORT = {
    "set": "s",
    "number": "cn",
    "rarity": "r",
    "printing": "f",
    "game": "pl",
}


def print_query(tree: Tree) -> str:
    """Return the canonical text of the tree. Its parentheses nest no deeper than in the text that
    was parsed, so that it can be parsed again.
    """
    match tree:
        case WordTerm():
            return tree.text
        case Phrase():
            return _quoted(tree.text)
        case Term():
            return _term(_SHORT.get(tree.field, tree.field), tree)
        case Not(Term(field="is") as flags):
            return _term("not", flags)
        case Not():
            inner = print_query(tree.part)
            return (
                f"-({inner})"
                if inner.startswith("-") or isinstance(tree.part, And | Or)
                else f"-{inner}"
            )
        case And():
            return " ".join(
                f"({print_query(p)})" if isinstance(p, Or) else print_query(p) for p in tree.parts
            )
        case Or():
            return " or ".join(map(print_query, tree.parts))


def _term(name: str, term: Term) -> str:
    return f"{name}{term.op}{'|'.join(_value(term.field, value) for value in term.values)}"


_NEEDS_NO_QUOTES = re.compile(r"[^\s()\"|:=<>!\\]+")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain_or_quoted(text: str) -> str:
    """Quote a text if it would mean something else without quotes; two dots would mean a range."""
    return text if _NEEDS_NO_QUOTES.fullmatch(text) and ".." not in text else _quoted(text)


def _value(field: str, value: Value) -> str:
    match value:
        case Range():
            return f"{_number(value.low)}..{_number(value.high)}"
        case Place():
            return _plain_or_quoted(value.code)
        case Named():
            return _quoted(value.name)
        case str():
            # Without quotes, a variant and the words after it may be parsed as another variant.
            begins = field == "v" and folded(value) in SELECTOR_BEGINNINGS
            return _quoted(value) if begins else _plain_or_quoted(value)
    return _number(value)


def _number(number: Decimal | None) -> str:
    return "" if number is None else f"{number:f}"
