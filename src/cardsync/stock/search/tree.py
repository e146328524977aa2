"""Defines the tree of a search: the parser makes it, the rest of the code reads it, and
`print_query` writes its canonical text. Pure.

An offset is the position of a part in the text; two trees that differ only in offsets are equal.
`parse(print_query(tree)) == tree`.
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
    """The name of a list or rule, if the search does not use its slug or id."""

    name: str


Value: TypeAlias = str | Decimal | Range | Named | Place


@dataclass(frozen=True, slots=True)
class WordTerm:
    """A card matches if each part of the text begins a word of the product name."""

    text: str
    at: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A card matches if the text occurs in the product name."""

    text: str
    at: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Term:
    """A comparison. One matching value is enough; with `!=`, no value may match."""

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
    """An And without parts selects everything. `all_of` builds And nodes, so that no And directly
    contains an And.
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
    """Yield every comparison, at any depth."""
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
    """Return whether the tree has a flag of GONE_FLAGS outside a negation."""
    match tree:
        case Term(field="is"):
            return not GONE_FLAGS.isdisjoint(tree.values)
        case And() | Or():
            return any(asks_for_gone(part) for part in tree.parts)
    return False


# Fields are printed by their shortest names.
_SHORT = {
    "set": "s",
    "number": "cn",
    "rarity": "r",
    "printing": "f",
    "game": "pl",
}


def print_query(tree: Tree) -> str:
    """Write the canonical text, whose parentheses nest no deeper than in the original text."""
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
    """Quote a text if it needs quotes; two dots may mean a range."""
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
