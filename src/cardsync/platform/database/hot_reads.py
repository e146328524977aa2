"""Reads the first row of a polled query for a seller in one round trip and one implicit
transaction, without planning.

Reads that arrive while all connections are busy share the next message, each part in its own
seller's scope. So a burst of polls waits for one round trip instead of queuing.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import NamedTuple

from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from cardsync.platform.database.connections import Connection
from cardsync.platform.database.joined_messages import (
    NAMES_LOST,
    Messages,
    Prepared,
    execute,
    prepare,
)
from cardsync.platform.database.spread import Spread
from cardsync.platform.database.transaction_settings import committed_before_the_disk, of_seller
from cardsync.platform.telemetry import spans

# The most reads in one message.
TOGETHER = 32
_ONLY_LOOKS: ContextVar[bool] = ContextVar("only_looks", default=False)


@contextmanager
def only_looking() -> Iterator[None]:
    """Roll back the block's writes in a seller's scope, because a HEAD request must change
    nothing.
    """
    token = _ONLY_LOOKS.set(True)
    try:
        yield
    finally:
        _ONLY_LOOKS.reset(token)


def only_looks() -> bool:
    return _ONLY_LOOKS.get()


class PolledQuery(NamedTuple):
    """A query with integer parameters: `$1` is the seller.

    A query with `writes` returns a row if it wrote a row, and waits for no row lock. A crash of the
    database may lose the query's last write, since the commit does not wait for the disk.
    """

    name: str
    sql: str
    writes: bool = False


class _Asked(NamedTuple):
    """A query with its values. The simple protocol takes several statements at once but no
    parameters, so the values are integers that this module formats.
    """

    name: str
    query: PolledQuery
    values: Sequence[int]
    row: asyncio.Future[TupleRow | None]

    def prepare(self) -> str:
        return prepare(self.name, self.query.sql)

    def execute(self) -> str:
        return execute(self.name, self.values)

    def whole(self) -> str:
        return re.sub(r"\$(\d+)", lambda found: str(self.values[int(found[1]) - 1]), self.query.sql)


class PolledReads:
    """Runs the polled queries on the pool's connections. Each process has one object."""

    def __init__(
        self,
        pool: AsyncConnectionPool[Connection],
        spread: Spread,
        *,
        planned: bool = True,
    ) -> None:
        self._pool = pool
        self._spread = spread
        self._messages = Messages(spread, planned=planned)
        self._free = pool.max_size
        self._waiting: deque[_Asked] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        # Whether a task was created but has not started: it will also take the reads that arrive
        # until it starts.
        self._begins = False

    async def first_row(self, seller_id: int, query: PolledQuery, *ids: int) -> TupleRow | None:
        if query.writes and only_looks():
            return None
        values = [int(value) for value in (seller_id, *ids)]
        row: asyncio.Future[TupleRow | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Asked(query.name, query, values, row))
        self._begin()
        with spans.part(f"EXECUTE {query.name}", kind="client", system="postgresql"):
            return await row

    def _begin(self) -> None:
        if self._waiting and self._free and not self._begins:
            self._free -= 1
            self._begins = True
            # The read runs in its own task, because a caller may leave, and then the rows of other
            # callers would be lost. The task has an empty context, because one caller's deadline
            # does not apply to the other callers.
            task = asyncio.create_task(self._read(), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _read(self) -> None:
        """Send one message, then return the connection to the pool, because other tasks wait for
        it.
        """
        try:
            # The pool's context manager is not used, because it would send a COMMIT without need.
            connection = await self._pool.getconn()
        except Exception as e:
            # No connection is available, so every waiting read fails.
            self._fail(self._take(len(self._waiting)), e)
            self._free += 1
            return
        finally:
            self._begins = False
        try:
            batch = self._take(TOGETHER)
            self._begin()
            await self._answer(connection, batch)
        finally:
            await self._pool.putconn(connection)
            self._free += 1
            self._begin()

    def _take(self, most: int) -> list[_Asked]:
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    async def _answer(self, connection: Connection, batch: list[_Asked]) -> None:
        try:
            rows = await self._rows(connection, batch)
        except Exception as e:
            reads = [asked for asked in batch if not asked.query.writes]
            self._fail([asked for asked in batch if asked.query.writes], e)
            if len(reads) == len(batch):
                self._fail(reads, e)
            elif reads:
                # A write that fails, on a full disk for example, must not fail the reads.
                await self._answer(connection, reads)
            return
        for asked, row in zip(batch, rows, strict=True):
            if not asked.row.done():
                asked.row.set_result(row)

    @staticmethod
    def _fail(batch: list[_Asked], reason: Exception) -> None:
        for asked in batch:
            if not asked.row.done():
                asked.row.set_exception(reason)

    async def _rows(self, connection: Connection, batch: list[_Asked]) -> list[TupleRow | None]:
        parts: list[str | Prepared] = []
        if any(asked.query.writes for asked in batch):
            parts.append(committed_before_the_disk())
        if self._spread.over_nodes:
            parts.insert(0, "BEGIN")
        # The SET LOCAL statements of the message have results, too.
        numbers = range(len(parts) + 1, len(parts) + 2 * len(batch), 2)
        for asked in batch:
            parts += [of_seller(asked.values[0]), asked]
        if self._spread.over_nodes:
            parts.append("COMMIT")
        try:
            found = await self._messages.send(connection, parts, numbers)
        except NAMES_LOST:
            await self._messages.forget(connection)
            found = await self._messages.send(connection, parts, numbers)
        return [rows[0] if rows else None for rows in found]
