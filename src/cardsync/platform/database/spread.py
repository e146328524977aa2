"""Knows whether the database is spread over nodes by seller (docs/distribution.md). Three things
are done otherwise there, because the form for one server is faster and nodes do not take it:
messages of several statements (`joined_messages.py`), plans for any seller, and rows that are
inserted from a read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import psycopg

_ASKED: Final = b"SELECT FROM pg_extension WHERE extname = 'citus'"
_INSERT: Final = "INSERT INTO"
# Its table, its columns, and where the rows come from.
_FROM_A_READ: Final = re.compile(
    r"INSERT INTO\s+\w+(\s+AS\s+\w+)?\s*(\([^()]*\))?\s*(OVERRIDING \w+ VALUE\s+)?(SELECT|WITH)\b"
)
_ANSWERS: Final = re.compile(r"\bRETURNING\b")


class Spread:
    """A process has one object for its database, which its first connection asks."""

    def __init__(self) -> None:
        self.over_nodes = False
        self._asked = False

    async def ask(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if not self._asked:
            found = await connection.execute(_ASKED)
            self.over_nodes = found.rowcount > 0
            self._asked = True
            await connection.rollback()


@lru_cache(maxsize=2_000)
def for_nodes(statement: str) -> str:
    """Return the statement as nodes take it. The coordinator copies the rows of an INSERT with a
    SELECT into the nodes' tables, which row-level security refuses, unless the INSERT returns
    something; and only what is returned is counted: after ON CONFLICT, it would count what was
    read.
    """
    before, insert, after = statement.rpartition(_INSERT)
    within = before.count("(") != before.count(")")
    last = insert + after
    if within or not _FROM_A_READ.match(last) or _ANSWERS.search(last):
        return statement
    return f"{statement.rstrip().rstrip(';')} RETURNING 1"
