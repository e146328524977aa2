"""Reads that may be long: statements with their values in, the rows of each out. All statements of a message cost one round trip.

They have connections of their own, so that however many wait for an answer, other work finds the pool as it was. A reading is one
snapshot of one seller's tables, writes nothing, and none of its statements takes longer than it may.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from typing import Any, cast

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.psycopg import dialect

Connection = psycopg.AsyncConnection[TupleRow]

_DIALECT = dialect()  # type: ignore[no-untyped-call]
# How many statements begin a reading.
_BEGINNING = 3
_KEPT_CHARACTERS = 6_000
# Who gets no connection in this time is told to come again.
_WAIT_SECONDS = 10


class Reading:
    """One transaction, begun by its first message. Values are bound by the client: several statements of a message take no others."""

    def __init__(self, connection: Connection, seller_id: int, seconds: float) -> None:
        self._connection = connection
        # Literals we format ourselves.
        self._begin: str | None = (
            f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL app.seller_id = '{int(seller_id)}';"
            f" SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}; "
        )
        self._open = False

    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[TupleRow]:
        """Values stand in the statement as `:name`."""
        [rows] = await self.together([statement], values)
        return rows

    async def together(
        self, statements: Sequence[str], values: Mapping[str, Any], *, last: bool = False
    ) -> list[list[TupleRow]]:
        """The rows of each statement. The last message of a reading may end it."""
        before, self._begin = self._begin or "", None
        bindable = [await _bindable(statement) for statement in statements]
        message = f"{before}{'; '.join(bindable)}{'; COMMIT' if last else ''}"
        self._open = True
        # A cursor that binds by itself: made for it by the pool.
        cursor = await self._connection.execute(cast(Any, message), values)
        self._open = not last
        rows = []
        for number in range(len(statements)):
            await cursor.set_result(bool(before) * _BEGINNING + number)
            rows.append(await cursor.fetchall())
        return rows

    async def end(self) -> None:
        if self._open:
            # A connection that is lost has nothing left to end.
            with suppress(psycopg.OperationalError):
                await self._connection.execute("ROLLBACK")


async def _bindable(statement: str) -> str:
    """What is too long to be kept is also too long to be read while others wait."""
    if len(statement) > _KEPT_CHARACTERS:
        return await asyncio.to_thread(_read, statement)
    return _kept(statement)


def _read(statement: str) -> str:
    return str(text(statement).compile(dialect=_DIALECT))


_kept = lru_cache(maxsize=500)(_read)


class Readings:
    """One per process; the pool's connections are as many as read at once."""

    def __init__(self, url: str, connections: int) -> None:
        options = {"autocommit": True, "cursor_factory": psycopg.AsyncClientCursor}
        # Looked at first, like those of sessions: after a restart of the database nobody's read fails for a connection of before.
        self.pool = AsyncConnectionPool[Connection](
            url,
            min_size=0,
            max_size=max(1, connections),
            kwargs=options,
            check=AsyncConnectionPool.check_connection,
            open=False,
            name="readings",
        )

    @asynccontextmanager
    async def of(self, seller_id: int, seconds: float) -> AsyncIterator[Reading]:
        async with self.pool.connection(timeout=_WAIT_SECONDS) as connection:
            reading = Reading(connection, seller_id, seconds)
            try:
                yield reading
            finally:
                await reading.end()
