"""Sends several statements to the database in one round trip, and returns the rows of each.

One message of the simple protocol carries them as text, and a statement that comes again and again
is planned once per connection and run by its name: the driver's own prepared statements belong to
the extended protocol, which takes one statement at a time. A pipeline carries them where the server
binds values, and to nodes, which would get a SET LOCAL with the whole text of its message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, cast
from weakref import WeakKeyDictionary

import psycopg
from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName
from psycopg.pq import ExecStatus
from psycopg.rows import RowFactory, TupleRow, tuple_row

from cardsync.platform.database.connections import Connection
from cardsync.platform.database.spread import Spread
from cardsync.platform.database.watched_cursors import watching

# A proxy between us and the database gave the connection another session.
NAMES_LOST: Final = (InvalidSqlStatementName, DuplicatePreparedStatement)


class Prepared(Protocol):
    """A statement that a connection plans once; `whole` is the same where no names last."""

    @property
    def name(self) -> str: ...
    def prepare(self) -> str: ...
    def execute(self) -> str: ...
    def whole(self) -> str: ...


def prepare(name: str, statement: str, types: Iterable[str] = ()) -> str:
    """Return the PREPARE of a statement whose values are named `$1`, `$2` and on.

    A polled read costs 1.6 x without it, in a burst 2.9 x; bench/joined_reads.py measures it. 50
    pages of orders cost 1.4 x without it; bench/fences.py measures it.
    """
    listed = ", ".join(types)
    return f"PREPARE {name}{f' ({listed})' if listed else ''} AS {statement}"


def execute(name: str, values: Iterable[int | str]) -> str:
    """Return the EXECUTE of a prepared statement. Its values are integers, or names that the client
    binds.
    """
    return f"EXECUTE {name} ({', '.join(map(str, values))})"


class Messages:
    """Knows the names that each connection of a pool has planned. Without `planned` none lasts."""

    def __init__(self, spread: Spread, *, planned: bool) -> None:
        self._spread = spread
        self._planned = planned
        self._known: WeakKeyDictionary[Connection, set[str] | None] = WeakKeyDictionary()

    async def send(
        self,
        connection: Connection,
        parts: Sequence[str | Prepared],
        asked: Sequence[int],
        values: Mapping[str, Any] | None = None,
    ) -> list[list[TupleRow]]:
        """Return the rows of the parts with the numbers `asked`. Raises one of NAMES_LOST."""
        known = self._known.setdefault(connection, set() if self._planned else None)
        statements = []
        for part in parts:
            if isinstance(part, str):
                statements.append(part)
            elif known is None:
                statements.append(part.whole())
            else:
                if part.name not in known:
                    await connection.execute(part.prepare().encode())
                    known.add(part.name)
                statements.append(part.execute())
        if self._spread.over_nodes:
            return await piped(connection, statements, asked, values)
        # The pool made this cursor for the connection; it binds by itself.
        cursor = await connection.execute(cast(Any, "; ".join(statements)), values)
        rows = []
        for number in asked:
            await cursor.set_result(number)
            rows.append(await cursor.fetchall() if _has_rows(cursor) else [])
        return rows

    async def forget(self, connection: Connection) -> None:
        """End the transaction of a message that lost its names; then send whole statements."""
        self._known[connection] = None
        await connection.execute("ROLLBACK")


def _has_rows(cursor: psycopg.AsyncCursor[Any]) -> bool:
    """Return whether the statement is no SET: that has no rows to fetch."""
    return cursor.pgresult is not None and cursor.pgresult.status == ExecStatus.TUPLES_OK


async def piped(
    connection: psycopg.AsyncConnection[Any],
    statements: Sequence[str],
    asked: Sequence[int],
    values: Mapping[str, Any] | None = None,
    row_factory: RowFactory[Any] = tuple_row,
) -> list[list[Any]]:
    """Send each statement as a message of a pipeline."""
    with watching(connection, "; ".join(statements)):
        async with connection.pipeline():
            cursors = [
                await connection.cursor(row_factory=row_factory).execute(cast(Any, one), values)
                for one in statements
            ]
    return [
        await cursors[number].fetchall() if _has_rows(cursors[number]) else [] for number in asked
    ]
