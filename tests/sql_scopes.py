"""Takes statements out of the text of modules, each SELECT with the names that it reads from: enough
to see which tables one of them joins, not a parser of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TEXT = re.compile(r'"""(.*?)"""|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
_NAME = r"(?!SELECT\b|LATERAL\b|unnest\b)([a-z_]+)(?:\s+(?:AS\s+)?(?!(?:on|set)\b)([a-z]\w*)\b)?"
_READ = re.compile(rf"\b(?:FROM|JOIN|UPDATE|USING)\s+{_NAME}(?!\s*\()")
_NEXT = re.compile(rf",\s*{_NAME}(?=\s*(?:,|\bWHERE\b|$))")
_STARTS = re.compile(r"\s*(?:SELECT|DELETE|UPDATE|INSERT|WITH)\b")


@dataclass(frozen=True)
class Scope:
    """A SELECT without those within it, and the scope around it. `tables` has what it reads, by the
    alias.
    """

    text: str
    outer: Scope | None

    @property
    def tables(self) -> dict[str, str]:
        return {found[2] or found[1]: found[1] for found in _READ.finditer(self.text)}

    def seen_from(self, alias: str) -> str | None:
        """Return the table of an alias that a scope around this one has."""
        around = self.outer
        while around is not None and alias not in around.tables:
            around = around.outer
        return None if around is None else around.tables[alias]


def texts(source: str) -> Iterator[str]:
    """Return the texts of a module that may hold SQL."""
    for found in _TEXT.finditer(source):
        yield found[1] or found[2] or ""


def without_parts(text: str) -> tuple[str, list[str]]:
    """Return the text with nothing in its parentheses, and what was in the outermost of them."""
    kept, parts, depth, start = [], [], 0, 0
    for at, mark in enumerate(text):
        if mark == "(":
            depth += 1
            start = at + 1 if depth == 1 else start
            kept.append(mark if depth == 1 else "")
        elif mark == ")" and depth:
            depth -= 1
            if depth == 0:
                parts.append(text[start:at])
                kept.append(mark)
        elif depth == 0:
            kept.append(mark)
    return "".join(kept), parts


def scopes(text: str, outer: Scope | None = None) -> Iterator[Scope]:
    """Return a statement and each SELECT within it. What stands in other parentheses belongs to the
    scope around them.
    """
    own, parts = _flat(text)
    scope = Scope(own, outer)
    yield scope
    for part in parts:
        yield from scopes(part, scope)


def _flat(text: str) -> tuple[str, list[str]]:
    own, parts = without_parts(text)
    found = []
    for part in parts:
        if _STARTS.match(part):
            found.append(part)
            continue
        more, deeper = _flat(part)
        own += f" ({more})"
        found += deeper
    return own, found
