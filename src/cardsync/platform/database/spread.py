"""Detects whether the database is spread over nodes by seller (docs/distribution.md). Three things
then work differently, because nodes do not accept the faster form that a single server accepts:
messages of several statements (`joined_messages.py`), generic plans, and INSERT with a SELECT.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import psycopg

_ASKED: Final = b"SELECT FROM pg_extension WHERE extname = 'citus'"
_INSERT: Final = "INSERT INTO"
# The INSERT's table, its columns, and the source of its rows.
_FROM_A_READ: Final = re.compile(
    r"INSERT INTO\s+\w+(\s+AS\s+\w+)?\s*(\([^()]*\))?\s*(OVERRIDING \w+ VALUE\s+)?(SELECT|WITH)\b"
)
_ANSWERS: Final = re.compile(r"\bRETURNING\b")


class Spread:
    """Whether the database is spread over nodes, which the first connection checks. Each process
    has one object for its database.
    """

    def __init__(self) -> None:
        self.over_nodes = False
        self._asked = False

    async def ask(self, connection: psycopg.AsyncConnection[object]) -> None:
        if not self._asked:
            found = await connection.execute(_ASKED)
            self.over_nodes = found.rowcount > 0
            self._asked = True
            await connection.rollback()


@lru_cache(maxsize=2_000)
def for_nodes(statement: str) -> str:
    """Return the statement in a form that nodes accept. The coordinator copies the rows of an
    INSERT with a SELECT into the nodes' tables, which row-level security refuses, unless the INSERT
    returns something. RETURNING also makes the count right: with ON CONFLICT, the coordinator would
    count the rows that it read.
    """
    before, insert, after = statement.rpartition(_INSERT)
    within = before.count("(") != before.count(")")
    last = insert + after
    if within or not _FROM_A_READ.match(last) or _ANSWERS.search(last):
        return statement
    return f"{statement.rstrip().rstrip(';')} RETURNING 1"
