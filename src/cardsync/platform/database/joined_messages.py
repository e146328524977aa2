"""Sends several statements to the database in one round trip and returns the rows of each.

Usually one message of the simple protocol contains the statements as text. A recurring statement is
planned once per connection by PREPARE and then run by its name, because the driver's own prepared
statements use the extended protocol, which takes one statement at a time. A pipeline sends the
statements instead if the server binds the values, if values of an answer are binary, or if the
database is spread over nodes, whose coordinator would pass on a SET LOCAL with the text of the
whole message.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, cast
from weakref import WeakKeyDictionary

import psycopg
from psycopg.errors import DuplicatePreparedStatement, InvalidSqlStatementName
from psycopg.pq import ExecStatus
from psycopg.rows import TupleRow, namedtuple_row, tuple_row

from cardsync.platform.database.connections import Connection
from cardsync.platform.database.spread import Spread
from cardsync.platform.database.watched_cursors import watching

# The errors of a connection that a proxy switched to another session, which lacks the prepared
# statements.
NAMES_LOST: Final = (InvalidSqlStatementName, DuplicatePreparedStatement)


class Prepared(Protocol):
    """A statement that a connection plans once. `whole` is the statement for connections without
    prepared statements.
    """

    @property
    def name(self) -> str: ...
    def prepare(self) -> str: ...
    def execute(self) -> str: ...
    def whole(self) -> str: ...


def prepare(name: str, statement: str, types: Iterable[str] = ()) -> str:
    """Return the PREPARE of a statement whose values are named `$1`, `$2` and so on.

    Without PREPARE a polled read takes 1.6 times as long, in a burst 2.9 times;
    bench/joined_reads.py measures it. 50 pages of orders take 1.4 times as long; bench/fences.py
    measures it.
    """
    listed = ", ".join(types)
    return f"PREPARE {name}{f' ({listed})' if listed else ''} AS {statement}"


def execute(name: str, values: Iterable[int | str]) -> str:
    """Return the EXECUTE of a prepared statement. The values are integers, or names that the client
    binds.
    """
    return f"EXECUTE {name} ({', '.join(map(str, values))})"


class Messages:
    """Sends messages, and stores which statements each connection of a pool has planned. Without
    `planned`, connections keep no prepared statements.
    """

    def __init__(self, spread: Spread, *, planned: bool) -> None:
        self._spread = spread
        self._planned = planned
        self._known: WeakKeyDictionary[Connection, set[str] | None] = WeakKeyDictionary()

    async def send(
        self,
        connection: Connection,
        parts: Sequence[str | Prepared],
        asked: Sequence[int],
        values: Sequence[Mapping[str, object] | None] | None = None,
        named: Container[int] = (),
        binary: Collection[int] = (),
    ) -> list[list[TupleRow]]:
        """Return the rows of the statements with the numbers `asked`; rows of the `named` have
        their columns' names, and rows of the `binary` the bytes of their values. `values` has the
        values of each statement, or None for one without names. Raises one of NAMES_LOST.
        """
        known = self._known.setdefault(connection, set() if self._planned else None)
        if known is not None:
            await self._plan(connection, [one for one in parts if not isinstance(one, str)], known)
        statements = [
            one if isinstance(one, str) else one.whole() if known is None else one.execute()
            for one in parts
        ]
        if self._spread.over_nodes or binary:
            bound = values or [None] * len(statements)
            return await piped(connection, statements, asked, bound, named, binary)
        if values is None:
            cursor = await connection.execute(cast(Any, "; ".join(statements)))
        else:
            cursor = await _bound(connection, statements, values)
        rows = []
        for number in asked:
            await cursor.set_result(number)
            rows.append(await _fetched(cursor, is_named=number in named))
        return rows

    async def _plan(
        self, connection: Connection, statements: Iterable[Prepared], known: set[str]
    ) -> None:
        """Prepare the statements that the connection does not know, in one round trip."""
        new = {one.name: one.prepare() for one in statements if one.name not in known}
        if new:
            # A message of them all would be the source text that each of them keeps.
            await piped(connection, list(new.values()), [], [None] * len(new))
            known.update(new)

    async def forget(self, connection: Connection) -> None:
        """Roll back a message whose prepared statements were lost; later messages send whole
        statements.
        """
        self._known[connection] = None
        await connection.execute("ROLLBACK")


async def _bound(
    connection: Connection,
    statements: Sequence[str],
    values: Sequence[Mapping[str, object] | None],
) -> psycopg.AsyncCursor[TupleRow]:
    """Send the statements as one message. Its description, which a trace shows, has no values."""
    cursor = psycopg.AsyncClientCursor(connection)
    bound = [cursor.mogrify(cast(Any, one), of) for one, of in zip(statements, values, strict=True)]
    with watching(connection, "; ".join(statements)):
        return await cursor.execute(cast(Any, "; ".join(bound)))


async def _fetched(
    cursor: psycopg.AsyncCursor[TupleRow], *, is_named: bool, is_binary: bool = False
) -> list[TupleRow]:
    found = cursor.pgresult
    if found is None or found.status != ExecStatus.TUPLES_OK:
        # A SET returns no rows.
        return []
    if is_binary:
        columns = range(found.nfields)
        return [
            tuple([found.get_value(row, column) for column in columns])
            for row in range(found.ntuples)
        ]
    if not is_named:
        return await cursor.fetchall()
    cursor.row_factory = cast(Any, namedtuple_row)
    rows = await cursor.fetchall()
    # The next result may have columns of the same name.
    cursor.row_factory = tuple_row
    return rows


async def piped(
    connection: psycopg.AsyncConnection,
    statements: Sequence[str],
    asked: Sequence[int],
    values: Sequence[Mapping[str, object] | None],
    named: Container[int] = (),
    binary: Container[int] = (),
    *,
    by_client: bool = False,
) -> list[list[Any]]:
    """Send each statement as a message of a pipeline; return the rows of the statements `asked`;
    rows of the `named` have their columns' names, and rows of the `binary` the bytes of their
    values. The server binds the values, or with `by_client` the client.
    """
    cursor = partial(psycopg.AsyncClientCursor, connection) if by_client else connection.cursor
    with watching(connection, "; ".join(statements)):
        async with connection.pipeline():
            cursors = [
                await _for_bytes(connection, one, of)
                if number in binary
                else await cursor().execute(cast(Any, one), of)
                for number, (one, of) in enumerate(zip(statements, values, strict=True))
            ]
    return [
        await _fetched(cursors[number], is_named=number in named, is_binary=number in binary)
        for number in asked
    ]


async def _for_bytes(
    connection: psycopg.AsyncConnection, statement: str, values: Mapping[str, object] | None
) -> psycopg.AsyncCursor[TupleRow]:
    """Run a statement whose values the client binds, although its cursors know only text."""
    bound = psycopg.AsyncClientCursor(connection).mogrify(cast(Any, statement), values)
    cursor = psycopg.AsyncCursor(connection)
    return await cursor.execute(cast(Any, bound), prepare=False, binary=True)
