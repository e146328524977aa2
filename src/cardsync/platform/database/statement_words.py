"""Describes statements for logs and traces, without their values. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from psycopg.sql import Composable

_MOST: Final = 200
_READ: Final = 4_000
# A quoted text, or a number that is not part of a name; the statement may be cut off within it.
_VALUE: Final = re.compile(
    r"'(?:[^']|'')*(?:'|\Z)|\$\$.*?(?:\$\$|\Z)|(?<![\w$.])\d+(?:\.\d+)?", re.S
)
_COMMENT: Final = re.compile(r"--[^\n]*")
# Statements that begin transactions; they name no table.
_AHEAD: Final = re.compile(
    r"(?:(?:BEGIN|SET LOCAL|PREPARE|SELECT (?:pg_catalog\.)?set_config)\b[^;]*;\s*)+", re.I
)
_TABLE: Final = re.compile(
    r"\b(?:FROM|INTO|UPDATE|COPY|JOIN)\s+(?:ONLY\s+)?([a-z_][a-z0-9_]*)", re.I
)


def described(statement: object) -> str:
    """Return the statement on one line, truncated, with `?` for each literal value.

    A COPY is described only by its verb and table, because the driver has written its values into
    it.
    """
    if isinstance(statement, bytes):
        statement = statement.decode("utf-8", "replace")
    elif isinstance(statement, Composable):
        statement = statement.as_string()
    return _described(str(statement)[:_READ])


@lru_cache(maxsize=1024)
def _described(statement: str) -> str:
    text = _AHEAD.sub("", _COMMENT.sub("", statement).strip())
    if text[:5].upper() == "COPY ":
        way = "FROM STDIN" if "FROM STDIN" in text else "TO STDOUT"
        return f"COPY {_table_of(text)} {way}"
    words = " ".join(_VALUE.sub("?", text).split())
    return words if len(words) <= _MOST else f"{words[: _MOST - 1]}…"


def _table_of(text: str) -> str:
    found = [one[1].lower() for one in _TABLE.finditer(text)]
    return next((one for one in found if one not in ("stdin", "lateral")), "")


@lru_cache(maxsize=1024)
def summary(words: str) -> str:
    """Return the verb and the first table of a statement from `described`, as a span's name."""
    verb = words.split(" ", 1)[0].upper()
    if verb == "EXECUTE":
        return " ".join(words.split()[:2])
    return f"{verb} {_table_of(words)}".strip() or "statement"
