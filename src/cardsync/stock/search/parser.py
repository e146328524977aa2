"""Parses the text of a search into its tree, by recursive descent. Raises QueryError. Pure.

The grammar is: query = and { "or" and }; and = unary { unary }; unary = ["-"] atom; atom = "("
query ")" | term | phrase | word.

A word of only punctuation is ignored beside other terms, and searched for literally if it is the
only term. A word that ends in a colon and is not the name of a field is a plain word.
"""

from __future__ import annotations

import re

from cardsync.platform import limits
from cardsync.stock.limits import SEARCH_DEPTH, SEARCH_TERMS
from cardsync.stock.search.fields import (
    FIELD_NAMES,
    FIELDS,
    QueryError,
    Refused,
    Written,
    field_of,
    term_values,
)
from cardsync.stock.search.folding import folded, is_punctuation
from cardsync.stock.search.tree import EVERYTHING, Not, Phrase, Term, Tree, WordTerm, all_of, any_of
from cardsync.stock.search.variants import SELECTOR_BEGINNINGS, SELECTORS

SPACE = re.compile(r"\s*")
_RUN = re.compile(r'[^\s()"]+')
_OP = re.compile(r"!=|<=|>=|[:=<>]")
_VALUE = re.compile(r'[^\s()"|]+')
_PHRASE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
OR = re.compile(r'or(?=[\s()"]|$)', re.IGNORECASE)
_NUMBER = re.compile(r"(?=.*\d)[a-z\d]+(?:-[a-z\d]+)*[★*+]?[a-z]?", re.IGNORECASE | re.ASCII)
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
# Long dashes mean the same as the short dash, because some keyboards replace short by long dashes.
DASHES = "-–—"


def parse(text: str, *, canonical: bool = False) -> Tree:
    """Parse `text`; a blank text selects all cards. Raises QueryError.

    With `canonical`, the text was printed from a tree, and may exceed the limit on the length of a
    seller's text.
    """
    if len(text) > limits.SEARCH_CHARACTERS and not canonical:
        raise QueryError(
            f"a search can have at most {limits.SEARCH_CHARACTERS:,} characters",
            limits.SEARCH_CHARACTERS,
        )
    return _Parser(_NOT_STORABLE.sub("\ufffd", text)).everything()


_BAD = re.compile(r'[^\s()"]*(?:"(?:[^"\\]|\\.)*"[^\s()"]*)?', re.DOTALL)


def end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def part_at(text: str, at: int) -> tuple[Tree | None, int]:
    """Parse the part of a search that begins at the offset `at`, where there is no parenthesis.
    Return its tree, or None if it cannot be parsed, and the offset of its end.
    """
    parser = _Parser(text)
    parser._at = at
    try:
        if signs := parser._punctuation():
            return Phrase(signs, at), parser._at
        return parser._unary(), parser._at
    except QueryError:
        end = end_of(_BAD, text, at)
        return None, end if end > at else len(text)


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
        self._at = end_of(SPACE, self._text, self._at)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _query(self) -> Tree:
        start = self._at
        parts = [self._and()]
        while OR.match(self._text, self._at):
            self._at += 2
            self._skip()
            parts.append(self._and())
        return any_of(parts, start) if len(parts) > 1 else parts[0]

    def _and(self) -> Tree:
        start = self._at
        parts = []
        passed = []
        while self._peek() not in ("", ")") and not OR.match(self._text, self._at):
            if signs := self._punctuation():
                passed.append(Phrase(signs, self._at - len(signs)))
                self._skip()
                if signs in DASHES and (number := self._number()):
                    parts.append(number)
            else:
                parts.append(self._unary())
            self._skip()
        if not parts and not passed:
            raise QueryError("a search term is missing here", start)
        return all_of(parts or passed, start) if len(parts or passed) > 1 else (parts or passed)[0]

    def _punctuation(self) -> str:
        """Read a word of only punctuation, or return an empty text if the next word has other
        characters.
        """
        if self._peek().isalnum():
            return ""
        run = _RUN.match(self._text, self._at)
        if run is None or not is_punctuation(run.group()):
            return ""
        negates = run.group() in DASHES and self._text[run.end() : run.end() + 1] in ("(", '"')
        if negates:
            return ""
        self._at = run.end()
        return run.group()

    def _number(self) -> Tree | None:
        """Read a collector number that follows a name and a dash, or return None if there is
        none.
        """
        start = self._at
        run = _RUN.match(self._text, start)
        if run is None or not _NUMBER.fullmatch(run.group()):
            return None
        self._count(start)
        self._at = run.end()
        return WordTerm(f"#{run.group()}", start)

    def _unary(self) -> Tree:
        if self._peek() not in DASHES:
            return self._atom()
        start = self._at
        self._at += 1
        nothing = self._peek() in ("", ")", *DASHES) or self._peek().isspace()
        if nothing or OR.match(self._text, self._at):
            raise QueryError('put a word after "-"', start)
        return Not(self._atom(), start)

    def _atom(self) -> Tree:
        if self._peek() == "(":
            return self._parenthesis()
        start = self._at
        self._count(start)
        if self._peek() == '"':
            text = self._phrase(start)
            if not folded(text):
                raise QueryError("put a word between the quotes", start)
            return Phrase(text, start)
        run = self._text[start : end_of(_RUN, self._text, start)]
        op = _OP.search(run)
        if op and not self._is_word(run, op):
            self._at = start + op.end()
            return self._term(
                run[: op.start()],
                op.group(),
                start,
            )
        self._at = start + len(run)
        if not folded(run):
            raise QueryError("there are no letters or digits to search for", start)
        return WordTerm(run, start)

    def _is_word(self, run: str, op: re.Match[str]) -> bool:
        """Return whether `run` is a plain word that ends in a colon, as in the name `Protection:
        Black`.
        """
        name, rest = run[: op.start()], run[op.end() :]
        quoted = self._text[self._at + len(run) : self._at + len(run) + 1] == '"'
        return (
            op.group() == ":"
            and bool(name)
            and name.lower() not in FIELD_NAMES
            and is_punctuation(rest)
            and not quoted
        )

    def _parenthesis(self) -> Tree:
        start = self._at
        self._depth += 1
        if self._depth > SEARCH_DEPTH:
            raise QueryError(f"parentheses can nest at most {SEARCH_DEPTH} deep", start)
        self._at += 1
        self._skip()
        tree = self._query()
        if self._peek() != ")":
            raise QueryError('this "(" has no ")"', start)
        self._at += 1
        self._depth -= 1
        return tree

    def _phrase(self, start: int) -> str:
        """Read a phrase in quotes; `start` is the offset of its term, for the error message."""
        found = _PHRASE.match(self._text, self._at)
        if found is None:
            raise QueryError("these quotes are not closed", start)
        self._at = found.end()
        return _ESCAPED.sub(r"\1", found.group(1))

    def _count(self, at: int) -> None:
        self._terms += 1
        if self._terms > SEARCH_TERMS:
            raise QueryError(f"a search can have at most {SEARCH_TERMS} terms", at)

    def _term(self, name: str, op: str, start: int) -> Tree:
        if not name:
            raise QueryError(f'put a field before "{op}", for example price{op}20', start)
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
            raise QueryError(f'put a value after "{written_name}"', start)
        self._at = found.end()
        return found.group()

    def _selector(self) -> str | None:
        """Read the longest variant's selector that begins at the current offset. Its words may be
        separated by any number of spaces.
        """
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
            at = end_of(SPACE, self._text, word.end())
        return longest
