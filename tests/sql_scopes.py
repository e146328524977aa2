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


def without_parts(text: str) -> str:
    """Return the text with nothing in its parentheses."""
    return "".join(f"{own}()" if part is not None else own for own, part in _parted(text))


def scopes(text: str, outer: Scope | None = None) -> Iterator[Scope]:
    """Return a statement and each SELECT within it. What stands in other parentheses belongs to the
    scope around them.
    """
    within: list[str] = []
    scope = Scope(_own(text, within), outer)
    yield scope
    for part in within:
        yield from scopes(part, scope)


def _own(text: str, within: list[str]) -> str:
    own = ""
    for before, part in _parted(text):
        own += before
        if part is None:
            continue
        if _STARTS.match(part):
            within.append(part)
            own += "()"
        else:
            own += f"({_own(part, within)})"
    return own


def _parted(text: str) -> Iterator[tuple[str, str | None]]:
    """Return what stands before each outermost pair of parentheses, and what in it."""
    depth, start, before = 0, 0, ""
    for at, mark in enumerate(text):
        if mark == "(":
            if depth == 0:
                before, start = text[start:at], at + 1
            depth += 1
        elif mark == ")" and depth:
            depth -= 1
            if depth == 0:
                yield before, text[start:at]
                start = at + 1
    yield (text[start:], None) if depth == 0 else (before, text[start:])
