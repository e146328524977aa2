"""Runs heavy reads on a standby (a streaming copy of the database) if it has caught up with the
moment when the read began. If the standby lags, is unavailable or cannot run the read, the read
runs on the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, TypeVar

import psycopg
import structlog
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from cardsync.platform.database.session import Database

log = structlog.get_logger(__name__)
T = TypeVar("T")

# If the standby lags longer than this, the read uses the database, and the standby is not tried for
# a while.
_WAIT_SECONDS: Final = 1.0
_AWAY_SECONDS: Final = 5.0
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
_AT: Final = text("SELECT pg_current_wal_insert_lsn()::text")
_HAS_COME: Final = text("SELECT pg_last_wal_replay_lsn() >= CAST(:at AS pg_lsn)")
# SQLSTATE classes: a read that would write, one that the standby's recovery cancelled, and a
# standby that disconnects.
_OF_THE_COPY: Final = ("25006", "40", "57P", "08")


class ReadCopy:
    """The standby. Each process has one object."""

    def __init__(self, standby: Database) -> None:
        self._standby = standby
        self._away_until = 0.0

    async def read(self, database: Database, work: Callable[[Database], Awaitable[T]]) -> T:
        """Do the work with snapshots and readings of the standby if possible. The work may run a
        second time, on the database, so it must not write anything twice.
        """
        if await self._is_level(database):
            standby = self._standby
            copied = replace(database, snapshots=standby.sessions, readings=standby.readings)
            try:
                return await work(copied)
            except (DBAPIError, psycopg.Error) as e:
                if not _is_of_the_copy(e):
                    raise
                log.info("read_copy_left", reason=type(e).__name__)
        return await work(database)

    async def _is_level(self, database: Database) -> bool:
        loop = asyncio.get_running_loop()
        if loop.time() < self._away_until:
            return False
        async with database.shared() as session:
            at = await session.scalar(_AT)
        try:
            async with asyncio.timeout(_WAIT_SECONDS), self._standby.sessions() as session:
                for pause in _PAUSES:
                    if await session.scalar(_HAS_COME, {"at": at}):
                        return True
                    await asyncio.sleep(pause)
            reason = "it lags"
        except (TimeoutError, OSError, DBAPIError, psycopg.Error) as e:
            reason = type(e).__name__
        log.info("read_copy_away", reason=reason)
        self._away_until = loop.time() + _AWAY_SECONDS
        return False


def _is_of_the_copy(failure: DBAPIError | psycopg.Error) -> bool:
    """Return whether the standby caused the error, so that the read may succeed on the database. A
    timeout of the read is not such an error.
    """
    cause = failure.orig if isinstance(failure, DBAPIError) else failure
    state = getattr(cause, "sqlstate", None)
    return state is None or state.startswith(_OF_THE_COPY)


@asynccontextmanager
async def read_copy(url: str | None) -> AsyncIterator[ReadCopy | None]:
    """Open the standby, if `url` is set."""
    if url is None:
        yield None
        return
    async with Database.open(url, pool=2, hot_pool=0) as opened:
        yield ReadCopy(opened)
