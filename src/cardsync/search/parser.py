"""Parses the text of a search into its tree. Lexer and recursive descent are written by hand. Pure.

query = and { "or" and }; and = unary { unary }; unary = ["-"] atom; atom = "(" query ")" | term |
phrase | word. Raises QueryError.
"""

from __future__ import annotations

import re

from cardsync import limits
from cardsync.search.fields import FIELDS, QueryError, Refused, Written, field_of, term_values
from cardsync.search.folding import folded
from cardsync.search.tree import EVERYTHING, Not, Phrase, Term, Tree, Word, all_of, any_of
from cardsync.search.variants import SELECTOR_BEGINNINGS, SELECTORS

_SPACE = re.compile(r"\s*")
_RUN = re.compile(r'[^\s()"]+')
_OP = re.compile(r"!=|<=|>=|[:=<>]")
_VALUE = re.compile(r'[^\s()"|]+')
_PHRASE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_OR = re.compile(r'or(?=[\s()"]|$)', re.IGNORECASE)
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


def parse(text: str, *, canonical: bool = False) -> Tree:
    """Parse `text`; a text of nothing but space selects everything. Raises QueryError.

    A canonical text may be longer than the text that the seller wrote.
    """
    if len(text) > limits.SEARCH_CHARACTERS and not canonical:
        raise QueryError(
            f"a search can have at most {limits.SEARCH_CHARACTERS:,} characters",
            limits.SEARCH_CHARACTERS,
        )
    return _Parser(_NOT_STORABLE.sub("\ufffd", text)).everything()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._terms = 0
        self._depth = 0

    def everything(self) -> Tree:
        self._skip()
        if self._at == len(self._text):
            return EVERYTHING
        tree = self._query()
        if self._at < len(self._text):
            raise QueryError("there is no ( for this )", self._at)
        return tree

    def _skip(self) -> None:
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _query(self) -> Tree:
        start = self._at
        parts = [self._and()]
        while _OR.match(self._text, self._at):
            self._at += 2
            self._skip()
            parts.append(self._and())
        return any_of(parts, start) if len(parts) > 1 else parts[0]

    def _and(self) -> Tree:
        start = self._at
        parts = []
        while self._peek() not in ("", ")") and not _OR.match(self._text, self._at):
            parts.append(self._unary())
            self._skip()
        if not parts:
            raise QueryError("a search term is missing here", start)
        return all_of(parts, start) if len(parts) > 1 else parts[0]

    def _unary(self) -> Tree:
        if self._peek() != "-":
            return self._atom()
        start = self._at
        self._at += 1
        nothing = self._peek() in ("", ")", "-") or self._peek().isspace()
        if nothing or _OR.match(self._text, self._at):
            raise QueryError("there is nothing after this -", start)
        return Not(self._atom(), start)

    def _atom(self) -> Tree:
        if self._peek() == "(":
            return self._parenthesis()
        start = self._at
        self._count(start)
        if self._peek() == '"':
            text = self._phrase(start)
            if not folded(text):
                raise QueryError("there is nothing to search for in these quotes", start)
            return Phrase(text, start)
        run = _RUN.match(self._text, start).group()  # type: ignore[union-attr]
        if op := _OP.search(run):
            self._at = start + op.end()
            return self._term(
                run[: op.start()],
                op.group(),
                start,
            )
        self._at = start + len(run)
        if not folded(run):
            raise QueryError("there is nothing to search for in this word", start)
        return Word(run, start)

    def _parenthesis(self) -> Tree:
        start = self._at
        self._depth += 1
        if self._depth > limits.SEARCH_DEPTH:
            raise QueryError(f"parentheses can nest at most {limits.SEARCH_DEPTH} deep", start)
        self._at += 1
        self._skip()
        tree = self._query()
        if self._peek() != ")":
            raise QueryError("there is no ) for this (", start)
        self._at += 1
        self._depth -= 1
        return tree

    def _phrase(self, start: int) -> str:
        """Read a phrase; `start` is the place at which its term begins."""
        found = _PHRASE.match(self._text, self._at)
        if found is None:
            raise QueryError("these quotes are not closed", start)
        self._at = found.end()
        return _ESCAPED.sub(r"\1", found.group(1))

    def _count(self, at: int) -> None:
        self._terms += 1
        if self._terms > limits.SEARCH_TERMS:
            raise QueryError(f"a search can have at most {limits.SEARCH_TERMS} terms", at)

    def _term(self, name: str, op: str, start: int) -> Tree:
        if not name:
            raise QueryError(f"a field is missing before {op}", start)
        negated = name.lower() == "not"
        field = FIELDS["is"] if negated else field_of(name, start)
        written = self._values(f"{name}{op}", field.name, start)
        try:
            op, values = term_values(field, op, written)
        except Refused as e:
            raise QueryError(f"{name}: {e}", start, e.nearest) from None
        term = Term(field.name, op, values, start)
        return Not(term, start) if negated else term

    def _values(self, written_name: str, field: str, start: int) -> list[Written]:
        values: list[Written] = []
        while True:
            if values:
                self._count(start)
            if self._peek() == '"':
                values.append(Written(self._phrase(start), True))
            else:
                values.append(Written(self._bare_value(written_name, field, start), False))
            if self._peek() != "|":
                return values
            self._at += 1

    def _bare_value(self, written_name: str, field: str, start: int) -> str:
        if field == "v" and (selector := self._selector()):
            return selector
        found = _VALUE.match(self._text, self._at)
        if found is None:
            raise QueryError(f"a value is missing after {written_name}", start)
        self._at = found.end()
        return found.group()

    def _selector(self) -> str | None:
        """Return the longest selector at this place, with any space between its words."""
        longest = None
        begun = ""
        at = self._at
        while word := _VALUE.match(self._text, at):
            begun += folded(word.group())
            if begun in SELECTORS:
                longest, self._at = begun, word.end()
            if begun not in SELECTOR_BEGINNINGS:
                break
            begun += " "
            at = _SPACE.match(self._text, word.end()).end()  # type: ignore[union-attr]
        return longest
