"""Notifies processes by PostgreSQL's LISTEN and NOTIFY: a topic's callbacks run within about a
second on every process.

`notify` runs in the session's own transaction, so a notice is sent if and only if the change is
committed. A notice is only a hint, and is missed while the connection is down: callbacks also run,
without a payload, after every (re)connect.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
import structlog
from psycopg import sql
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.concurrency import beside

log = structlog.get_logger(__name__)

Callback = Callable[[str], None]

APPLICATION_NAME = "cardsync notices"
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
# A connection that only listens detects a vanished server only by keepalive probes.
_CONNECTION = {
    "application_name": APPLICATION_NAME,
    "autocommit": True,
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


async def notify(session: AsyncSession, topic: str, payload: str = "") -> None:
    """Notify every process that listens to `topic`, at the commit of this transaction."""
    await session.execute(
        text("SELECT pg_notify(:topic, :payload)"),
        {"topic": topic, "payload": payload},
    )


class Notices:
    """Listens for notices and calls the callbacks. Each process has one object.

    Callbacks run in the event loop and must return immediately: they set an event or drop a cache.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._callbacks: dict[str, list[Callback]] = {}

    def on(self, topic: str, callback: Callback) -> None:
        """Add a callback; call this before `listening`."""
        self._callbacks.setdefault(topic, []).append(callback)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with beside(self._listen_forever()):
            yield

    async def _listen_forever(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async for topic, payload in self._notices():
                    pause = FIRST_PAUSE
                    self._call(topic, payload)
            except (psycopg.Error, OSError) as e:
                log.warning("notices_away", kind=type(e).__name__)
            # The pause has jitter, because all processes lose the same database at the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _notices(self) -> AsyncIterator[tuple[str, str]]:
        """Yield the notices of one connection: first every topic without a payload, then each
        notice that arrives.
        """
        connection = await psycopg.AsyncConnection.connect(
            self._url,
            **_CONNECTION,  # type: ignore[arg-type]
        )
        async with connection:
            for topic in self._callbacks:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(topic)))
            for topic in self._callbacks:
                yield topic, ""
            async for notice in connection.notifies():
                yield notice.channel, notice.payload

    def _call(self, topic: str, payload: str) -> None:
        for callback in self._callbacks.get(topic, ()):
            try:
                callback(payload)
            except Exception:
                log.exception("notice_failed", topic=topic)
