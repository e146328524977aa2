"""Opens connections whose waits for the database end at the request's deadline.

A server that hangs sends nothing, so the wait must end on our side. Cancelling the statement does
not help: the driver asks the server to cancel it and waits for the reply. So we shut the socket
down: libpq sees the end of the stream, the caller gets an OperationalError as from a dead server,
and the pool replaces the connection.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf
from typing import Any, Self, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine

from cardsync.platform.database.spread import Spread
from cardsync.platform.database.watched_cursors import WatchedCursor

Connection = psycopg.AsyncConnection[TupleRow]
T = TypeVar("T")

# A transaction may take this long to end after the deadline.
ENDING_SECONDS = 1.0
# A new connection may take this long; libpq takes only whole seconds.
CONNECT_SECONDS = 5
# A pool that fails to connect starts again after this time, instead of waiting for minutes.
RECONNECT_SECONDS = 5


class Deadline:
    """The moment when the answer to a request must have begun, on the event loop's clock."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """Set the deadline for the block and for the tasks that it starts."""
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


def answer_has_begun() -> bool:
    """Return whether the request's answer has begun, so that the request has no deadline
    any more.
    """
    deadline = _current.get()
    return deadline is not None and deadline.at == inf


def _left(now: float) -> float:
    deadline = _current.get()
    return inf if deadline is None else max(deadline.at - now, ENDING_SECONDS)


# The event loop has only weak references to tasks, so this set references them.
_abandoned: set[asyncio.Task[object]] = set()


def _close_abandoned(connecting: asyncio.Task[Any]) -> None:
    _abandoned.discard(connecting)
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().pgconn.finish()


class BoundedConnection(psycopg.AsyncConnection[TupleRow]):
    """A connection whose waits end at the request's deadline, and after `longest` seconds at the
    latest. A statement that takes longer than `slow` seconds is logged.
    """

    longest = inf
    slow = inf
    spread = Spread()
    _is_begun = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cursor_factory = WatchedCursor

    @classmethod
    def within(
        cls,
        seconds: float,
        slow: float = inf,
        spread: Spread | None = None,
    ) -> type[Self]:
        own = {"longest": seconds, "slow": slow, "spread": spread or Spread()}
        return type(cls.__name__, (cls,), own)

    @classmethod
    async def connect(cls, *args: Any, **options: Any) -> Self:
        # The driver would keep an interrupted connection open until garbage collection. So a
        # cancelled caller does not interrupt connecting: the new connection is closed as soon as it
        # is open.
        connecting = asyncio.create_task(super().connect(*args, **options))
        try:
            connection = await asyncio.shield(connecting)
        except asyncio.CancelledError:
            _abandoned.add(connecting)
            connecting.add_done_callback(_close_abandoned)
            raise
        try:
            await cls.spread.ask(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    @contextmanager
    def beginning(self) -> Iterator[str]:
        """Yield the statement that begins a transaction, which the block sends in its message. The
        driver itself would wait for the answer before it sends the message.
        """
        level = self.isolation_level
        self._is_begun = True
        try:
            yield "BEGIN" + (f" ISOLATION LEVEL {level.name.replace('_', ' ')}" if level else "")
        finally:
            self._is_begun = False

    def _start_query(self) -> PQGen[None]:
        if not self._is_begun:
            yield from super()._start_query()

    async def wait(
        self,
        gen: PQGen[T],
        *args: Any,
        **options: Any,
    ) -> T:
        loop = asyncio.get_running_loop()
        seconds = min(self.longest, _left(loop.time()))
        if seconds == inf:
            return await super().wait(gen, *args, **options)
        cut = loop.call_later(seconds, self._cut)
        try:
            return await super().wait(gen, *args, **options)
        finally:
            cut.cancel()

    async def rollback(self) -> None:
        """Roll back, unless the connection is closed, which already rolled back."""
        if not self.closed:
            await super().rollback()

    def _cut(self) -> None:
        # Shut down a copy of the descriptor, because only libpq may close the original.
        with (
            suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(self.pgconn.socket)) as copy,
        ):
            copy.shutdown(socket.SHUT_RDWR)


def _speaks(connection: Connection) -> bool:
    """Return whether an idle connection has something to read: this can only be the server's last
    message.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def still_there(connection: Connection) -> None:
    """Check a connection before the pool returns it; raise if the server has closed it.

    The check costs a round trip only if the connection has something to read. Because of the check,
    no read fails after a restart of the database.
    """
    if _speaks(connection):
        await AsyncConnectionPool.check_connection(connection)


def check_before_use(engine: AsyncEngine) -> None:
    """Add the same check to the pool of sessions."""
    dialect = engine.dialect

    def check(connection: Any, *_: object) -> None:
        if connection.driver_connection.closed:
            raise DisconnectionError
        if not _speaks(connection.driver_connection):
            return
        try:
            dialect.do_ping(connection)
        except (psycopg.Error, DBAPIError) as e:
            raise DisconnectionError from e

    event.listen(engine.sync_engine.pool, "checkout", check)
