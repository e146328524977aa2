"""Connections that keep nobody waiting for ever: a request's deadline in, each wait for the
database ended at it.

A server that hangs says nothing, so we must end the wait from our side. To cancel the statement is
no way out: the driver asks the server to end it, and waits for that. So the socket is shut down:
libpq sees the end of the stream, the caller an OperationalError as of a dead server, and the pool a
connection to replace.
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

Connection = psycopg.AsyncConnection[TupleRow]
T = TypeVar("T")

# What ends a transaction after the deadline is short work, and gets so long.
ENDING_SECONDS = 1.0
# A new connection may take so long, which libpq knows in whole seconds.
CONNECT_SECONDS = 5
# A pool that fails to connect begins afresh after so long, instead of pausing for minutes.
RECONNECT_SECONDS = 5


class Deadline:
    """The moment when the answer to a request must have begun, on the event loop's clock."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """It holds in the block, and in the tasks that the block starts."""
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


def _left(now: float) -> float:
    deadline = _current.get()
    return inf if deadline is None else max(deadline.at - now, ENDING_SECONDS)


class BoundedConnection(psycopg.AsyncConnection[TupleRow]):
    """Each wait ends at its request's deadline, and after `longest` seconds at the latest."""

    longest = inf

    @classmethod
    def within(cls, seconds: float) -> type[Self]:
        return type(cls.__name__, (cls,), {"longest": seconds})

    async def wait(self, gen: PQGen[T], *args: Any, **options: Any) -> T:
        loop = asyncio.get_running_loop()
        seconds = min(self.longest, _left(loop.time()))
        if seconds == inf:
            return await super().wait(gen, *args, **options)
        cut = loop.call_later(seconds, self._cut)
        try:
            return await super().wait(gen, *args, **options)
        finally:
            cut.cancel()

    def _cut(self) -> None:
        # A copy of the descriptor, because only libpq closes the connection's own.
        with (
            suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(self.pgconn.socket)) as copy,
        ):
            copy.shutdown(socket.SHUT_RDWR)


def _speaks(connection: Connection) -> bool:
    """An idle connection has nothing to be read but its server's last words."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def still_there(connection: Connection) -> None:
    """What a pool checks before it gives a connection: raises if the server has ended it.

    Only a connection that has something to say is asked, so a look costs no round trip, and a
    restart of the database nobody's read.
    """
    if _speaks(connection):
        await AsyncConnectionPool.check_connection(connection)


def look_before_use(engine: AsyncEngine) -> None:
    """The same for the pool of sessions."""
    dialect = engine.dialect

    def look(connection: Any, *_: object) -> None:
        if not _speaks(connection.driver_connection):
            return
        try:
            dialect.do_ping(connection)
        except (psycopg.Error, DBAPIError) as e:
            raise DisconnectionError from e

    event.listen(engine.sync_engine.pool, "checkout", look)
