"""Stores when agents last called, and why they wait for a person. Each heartbeat notes its agent's
report in memory, and one statement per second writes the notes of all sellers.

A killed process loses the notes of at most one second; the next heartbeats replace them.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import structlog
from sqlalchemy import text

from cardsync.access.caller import Caller
from cardsync.agents.sync.persons_turn import Turn, read_turn
from cardsync.platform.concurrency import every
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database

log = structlog.get_logger(__name__)
# An agent calls every 30 seconds; an agent that missed several calls is offline.
OFFLINE: Final = timedelta(minutes=2)

# A null parameter keeps the stored text; an empty `turn` means that the agent no longer waits. The
# start of the wait changes only with the turn's kind.
FLUSH_SQL = text(queries_of(__package__)["flush_last_seen"])
_AGENT: Final = """
    SELECT last_seen_at, version, platform, your_turn, your_turn_host, your_turn_since
      FROM agent_seen WHERE seller_id = :seller
"""


def is_offline(seen_at: datetime | None, now: datetime) -> bool:
    """Return whether an agent is not calling now, or never called. Pure."""
    return seen_at is None or now - seen_at > OFFLINE


class Noted(NamedTuple):
    """One report of an agent. A text that was not sent is None; an empty `turn` ends the turn."""

    at: datetime
    version: str | None = None
    platform: str | None = None
    turn: str | None = None
    host: str | None = None


class Agent(NamedTuple):
    """The agent as of its last call; version and platform are those of its last report."""

    last_seen_at: datetime
    version: str | None
    platform: str | None
    turn: Turn | None = None


class LastSeen:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted: dict[int, Noted] = {}
        self._in_writing: dict[int, Noted] = {}
        self._writing = asyncio.Lock()

    def note(self, seller_id: int, noted: Noted) -> None:
        before = self._noted.get(seller_id)
        if before is not None and noted.turn is None:
            # This agent drives no browser, so it does not end the turn of another agent of the
            # account.
            noted = noted._replace(turn=before.turn, host=before.host)
        self._noted[seller_id] = noted

    async def flush(self) -> None:
        # Only one write runs at a time: an older report that is written after a newer one would be
        # ignored, and its turn lost.
        async with self._writing:
            await self._flush()

    async def _flush(self) -> None:
        if not self._noted:
            return
        noted = self._noted
        self._noted = {}
        self._in_writing = noted
        try:
            await self._write(noted)
        except BaseException:
            # Notes that arrived in the meantime are newer, so they have precedence.
            self._noted = noted | self._noted
            raise
        finally:
            self._in_writing = {}

    async def at(self, source: Source, caller: Caller) -> datetime | None:
        """Return when the agent last called, stored or not yet written."""
        agent = await self.agent(source, caller)
        return agent.last_seen_at if agent else None

    async def agent(self, source: Source, caller: Caller) -> Agent | None:
        """Return the newest call, stored or not yet written; None before the first call."""
        rows = await rows_of(source)(_AGENT, {"seller": caller.seller_id})
        stored = None
        for at, version, platform, *turn in rows:
            stored = Agent(at, version, platform, read_turn(*turn))
        noted = self._noted.get(caller.seller_id) or self._in_writing.get(caller.seller_id)
        return _newest(stored, noted)

    async def _write(self, noted: dict[int, Noted]) -> None:
        moments, versions, platforms, turns, hosts = zip(*noted.values(), strict=True)
        async with self._database.shared() as session:
            await session.execute(
                FLUSH_SQL,
                {
                    "sellers": list(noted),
                    "moments": list(moments),
                    "versions": list(versions),
                    "platforms": list(platforms),
                    "turns": list(turns),
                    "hosts": list(hosts),
                },
            )

    def flushing(self, seconds: float) -> AbstractAsyncContextManager[None]:
        return every(seconds, self.flush, "last_seen_flush_failed", last=True)


def _newest(stored: Agent | None, noted: Noted | None) -> Agent | None:
    """Return the agent with the noted reports, as the next write will store it. Pure."""
    if noted is None or (stored and stored.last_seen_at >= noted.at):
        return stored
    before = stored or Agent(noted.at, None, None)
    turn = before.turn if noted.turn is None else read_turn(noted.turn, noted.host, noted.at)
    if turn and before.turn and turn.kind == before.turn.kind:
        turn = turn._replace(since=before.turn.since)
    return Agent(noted.at, noted.version or before.version, noted.platform or before.platform, turn)
