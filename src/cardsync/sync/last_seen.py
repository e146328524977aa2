"""Keeps the times when agents last called: each heartbeat notes one in memory, and one set-wise
statement a second writes them.

A process that is killed loses at most one second of them, and the next heartbeat brings newer ones.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import structlog
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.concurrency import flushing
from cardsync.database.session import Database
from cardsync.sync.models import AgentSeen

log = structlog.get_logger(__name__)
# An agent calls every 30 seconds; one that missed a few calls is offline.
OFFLINE: Final = timedelta(minutes=2)

FLUSH_SQL = text("""
    INSERT INTO agent_seen (seller_id, last_seen_at, version, platform)
    SELECT noted.* FROM unnest(CAST(:sellers AS bigint[]), CAST(:moments AS timestamptz[]), CAST(:versions AS text[]),
                               CAST(:platforms AS text[])) AS noted (seller_id, last_seen_at, version, platform)
      JOIN seller ON seller.id = noted.seller_id  -- one that was erased meanwhile does not come back
     ORDER BY noted.seller_id
    ON CONFLICT (seller_id) DO UPDATE
       SET last_seen_at = excluded.last_seen_at, version = coalesce(excluded.version, agent_seen.version),
           platform = coalesce(excluded.platform, agent_seen.platform)
     WHERE agent_seen.last_seen_at < excluded.last_seen_at
""")


def is_offline(seen_at: datetime | None, now: datetime) -> bool:
    """Whether an agent does not call at present; one that never called does not either. Pure."""
    return seen_at is None or now - seen_at > OFFLINE


class Agent(NamedTuple):
    """The agent as it called last; version and platform are those of its last report."""

    last_seen_at: datetime
    version: str | None
    platform: str | None


class LastSeen:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted: dict[int, tuple[datetime, str | None, str | None]] = {}
        self._in_writing: dict[int, tuple[datetime, str | None, str | None]] = {}

    def note(
        self,
        seller_id: int,
        now: datetime,
        version: str | None,
        platform: str | None,
    ) -> None:
        self._noted[seller_id] = (now, version, platform)

    async def flush(self) -> None:
        if not self._noted:
            return
        noted = self._noted
        self._noted = {}
        self._in_writing = noted
        try:
            await self._write(noted)
        except BaseException:
            # A time that was noted meanwhile is newer.
            self._noted = noted | self._noted
            raise
        finally:
            self._in_writing = {}

    async def at(self, session: AsyncSession, caller: Caller) -> datetime | None:
        """Return the newest of the stored time and the one that is not written yet."""
        unwritten = self._noted.get(caller.seller_id) or self._in_writing.get(caller.seller_id)
        stored = await session.scalar(
            select(AgentSeen.last_seen_at).where(AgentSeen.seller_id == caller.seller_id)
        )
        return max(
            (moment for moment in (stored, unwritten and unwritten[0]) if moment), default=None
        )

    async def agent(self, session: AsyncSession, caller: Caller) -> Agent | None:
        """Return the newest of what is stored and what is not written yet; None before the first
        call.
        """
        columns = select(AgentSeen.last_seen_at, AgentSeen.version, AgentSeen.platform)
        row = (
            await session.execute(columns.where(AgentSeen.seller_id == caller.seller_id))
        ).one_or_none()
        stored = Agent(*row) if row else None
        noted = self._noted.get(caller.seller_id) or self._in_writing.get(caller.seller_id)
        if noted is None or (stored and stored.last_seen_at >= noted[0]):
            return stored
        newest = Agent(*noted)
        return Agent(
            newest.last_seen_at,
            newest.version or (stored.version if stored else None),
            newest.platform or (stored.platform if stored else None),
        )

    async def _write(self, noted: dict[int, tuple[datetime, str | None, str | None]]) -> None:
        moments, versions, platforms = zip(*noted.values(), strict=True)
        async with self._database.shared() as session:
            await session.execute(
                FLUSH_SQL,
                {
                    "sellers": list(noted),
                    "moments": list(moments),
                    "versions": list(versions),
                    "platforms": list(platforms),
                },
            )

    def flushing(self, every: float) -> AbstractAsyncContextManager[None]:
        return flushing(self.flush, every, "last_seen_flush_failed")
