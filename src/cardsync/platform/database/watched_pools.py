"""Connection pools that measure how long requests wait for a connection."""

from __future__ import annotations

from typing import Any

from prometheus_client import Histogram
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import AsyncAdaptedQueuePool, PoolProxiedConnection

from cardsync.platform import clock
from cardsync.platform.database.connections import Connection

WAITS = Histogram(
    "cardsync_connection_wait_seconds",
    "Time until a pool gave a database connection",
    ["pool"],
    buckets=(0.001, 0.005, 0.025, 0.1, 0.5, 2, 10),
)
_SESSIONS = WAITS.labels("sessions")


class WatchedSessionPool(AsyncAdaptedQueuePool):
    """The pool of ordinary sessions."""

    def connect(self) -> PoolProxiedConnection:
        started = clock.monotonic()
        try:
            return super().connect()
        finally:
            _SESSIONS.observe(clock.monotonic() - started)


class WatchedConnectionPool(AsyncConnectionPool[Connection]):
    """A pool of psycopg, whose waits are counted under its name."""

    async def getconn(self, *args: Any, **options: Any) -> Connection:
        started = clock.monotonic()
        try:
            return await super().getconn(*args, **options)
        finally:
            WAITS.labels(self.name).observe(clock.monotonic() - started)
