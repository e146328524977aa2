"""Opens the database's pools, and sessions that see one seller's rows.

Every transaction on tenant tables sets `app.seller_id`, which row-level security compares; the role
cannot bypass it. `polled` reads an agent's poll in one round trip; all other code uses a session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias, cast

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import CursorResult, text
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from cardsync.platform.database.bound_text import kept_named
from cardsync.platform.database.connections import (
    CONNECT_SECONDS,
    RECONNECT_SECONDS,
    BoundedConnection,
    Connection,
    check_before_use,
    still_there,
)
from cardsync.platform.database.hot_reads import PolledReads, only_looks
from cardsync.platform.database.joined_messages import piped
from cardsync.platform.database.seller_slots import Slots, Work
from cardsync.platform.database.snapshot_reads import Asked, Planned, Reading, Readings
from cardsync.platform.database.spread import Spread
from cardsync.platform.database.transaction_settings import of_seller
from cardsync.platform.database.urls import APP_ROLE, engine_url, libpq_url, pooler_url
from cardsync.platform.database.watched_pools import WatchedConnectionPool, WatchedSessionPool

# A statement with the values that it names.
Statement: TypeAlias = tuple[str, Mapping[str, object]]

# The key of the seal in a session's `info`.
SEAL = "seal"
# The key, in a session's `info`, of the work to do at the end of its transaction.
_LAST = "last"
_HOT_WAIT_SECONDS = 10


@dataclass(frozen=True)
class Database:
    """Each process has one object; `open()` makes it."""

    url: str
    engine: AsyncEngine
    sessions: async_sessionmaker[AsyncSession]
    hot: AsyncConnectionPool[Connection]
    polled: PolledReads
    readings: Readings
    slots: Slots
    spread: Spread
    # The sessions of snapshots, if they read a copy of the database (`read_copy.py`).
    snapshots: async_sessionmaker[AsyncSession] | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        *,
        pool: int,
        hot_pool: int,
        read_pool: int = 2,
        hot_seconds: float = inf,
        seconds: float = inf,
        slow: float = inf,
        seal: Callable[[], bytes] | None = None,
        role: str | None = APP_ROLE,
        pooler: str | None = None,
    ) -> AsyncIterator[Database]:
        """Open the pools, through the pooler if there is one. `url` is the URL of the server
        itself, not of the pooler.

        No wait is longer than `seconds`, and no wait of the polled reads longer than `hot_seconds`.
        Statements that take longer than `slow` seconds are logged. The seal, which is read only
        when needed, allows sessions to create members and credentials.
        """
        plain = libpq_url(url, role=role)
        spread = Spread()
        through = plain if pooler is None else pooler_url(pooler)
        # A pooler gives each transaction another session, so statements cannot be prepared.
        plans: dict[str, object] = {} if pooler is None else {"prepare_threshold": None}
        engine = create_async_engine(
            engine_url(through),
            poolclass=WatchedSessionPool,
            pool_size=pool,
            max_overflow=0,
            hide_parameters=True,
            connect_args={
                "async_creator_fn": BoundedConnection.within(seconds, slow, spread).connect,
                "connect_timeout": CONNECT_SECONDS,
                **plans,
            },
        )
        check_before_use(engine)
        hot = WatchedConnectionPool(
            through,
            connection_class=BoundedConnection.within(hot_seconds, slow, spread),
            min_size=0,
            max_size=max(1, hot_pool),
            # A polling agent tries again soon: an early 503 serves it better than a long wait for
            # an unavailable database.
            timeout=min(_HOT_WAIT_SECONDS, hot_seconds),
            reconnect_timeout=RECONNECT_SECONDS,
            kwargs={
                "autocommit": True,
                "connect_timeout": CONNECT_SECONDS,
                **plans,
            },
            check=still_there,
            open=False,
            name="hot",
        )
        slots = Slots(pool, read_pool)
        readings = Readings(through, read_pool, slots, spread, seconds, slow, planned=not plans)
        await hot.open()
        await readings.pool.open()
        try:
            sessions = async_sessionmaker(engine, expire_on_commit=False, info={SEAL: seal})
            polled = PolledReads(hot, spread, planned=not plans)
            yield cls(plain, engine, sessions, hot, polled, readings, slots, spread)
        finally:
            await readings.pool.close()
            await hot.close()
            await engine.dispose()

    @asynccontextmanager
    async def tenant(
        self,
        seller_id: int,
        *,
        snapshot: bool = False,
        work: Work = Work.SHORT,
        seconds: float | None = None,
    ) -> AsyncIterator[AsyncSession]:
        """Open one transaction in one seller's scope. The block's end commits the transaction; an
        exception rolls it back.

        With `snapshot`, every statement sees the database as of the first statement (repeatable
        read). A statement may take `seconds`, and a wait for a lock half of that.
        """
        made = self.snapshots if snapshot and self.snapshots else self.sessions
        async with self.slots.of(seller_id, work), made() as session, session.begin():
            if snapshot:
                await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            # One message begins the transaction and sets its seller and its bounds.
            bounds: Mapping[str, object] = {}
            beginning = [of_seller(seller_id)]
            if seconds is not None:
                bounds = {"most": f"{seconds:f}s", "lock": f"{seconds / 2:f}s"}
                beginning.append(_BOUNDS)
            with cast(BoundedConnection, await driver(session)).beginning() as begin:
                await in_one_message(session, [begin, *beginning], bounds)
            yield session
            for last in session.info.pop(_LAST, {}).values():
                await last(session)
            if only_looks():
                # A rollback would expire the loaded rows.
                session.expunge_all()
                await session.rollback()

    @asynccontextmanager
    async def bounded(
        self,
        seller_id: int,
        seconds: float,
        *,
        snapshot: bool = False,
        work: Work = Work.LONG,
    ) -> AsyncIterator[AsyncSession]:
        """Open a seller's transaction for long work. A seller has few such transactions at the same
        time.
        """
        async with self.tenant(seller_id, snapshot=snapshot, work=work, seconds=seconds) as session:
            yield session

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[AsyncSession]:
        """Open one transaction on tables that belong to no seller; in it, tenant tables
        seem empty.
        """
        async with self.slots.of(None), self.sessions() as session, session.begin():
            yield session


_BOUNDS = """
    SELECT set_config('statement_timeout', :most, true) AS most,
           set_config('lock_timeout', :lock, true) AS lock
"""


async def enter_tenant(session: AsyncSession, seller_id: int) -> None:
    """Set the seller of this transaction."""
    await session.execute(text(of_seller(seller_id)))


def at_the_end(
    session: AsyncSession, name: str, work: Callable[[AsyncSession], Awaitable[None]]
) -> None:
    """Do this work at the end of a seller's transaction, once per name. The work locks rows that
    many transactions write: at their ends, all these transactions lock the rows in the same order
    and only briefly.
    """
    session.info.setdefault(_LAST, {}).setdefault(name, work)


async def run(session: AsyncSession, statement: str, values: Mapping[str, object]) -> int:
    """Run a statement with the `values` that it names; return the number of rows that it wrote."""
    bound = {name: value for name, value in values.items() if f":{name}" in statement}
    result = await session.execute(text(statement), bound)
    assert isinstance(result, CursorResult)
    return result.rowcount


async def in_one_message(
    session: AsyncSession | Reading,
    statements: Sequence[str | Planned],
    values: Mapping[str, object],
) -> list[list[Any]]:
    """Run several statements in one round trip and return the rows of each. Each statement may use
    any of the values. A statement after one that locks a row sees the changes of the lock's last
    holder.
    """
    if isinstance(session, Reading):
        return await session.together(statements, values, named=True)
    whole = [one.statement if isinstance(one, Planned) else one for one in statements]
    return await run_all(session, [(one, values) for one in whole])


async def run_all(session: AsyncSession, statements: Sequence[Statement]) -> list[list[Any]]:
    """Run statements, each with values of its own, in one round trip, and return the rows of each."""
    bound, every = [kept_named(one) for one, _ in statements], range(len(statements))
    values = [of for _, of in statements]
    return await piped(await driver(session), bound, every, values, named=every)


class SessionReading(Reading):
    """Reads in a session's transaction, which see what it has written. In a session itself, reads
    that run concurrently would not share messages.
    """

    def __init__(self, session: AsyncSession) -> None:
        super().__init__()
        self._session = session

    async def _answers(self, asked: Asked, *, last: bool) -> list[list[TupleRow]]:
        await self._session.flush()
        statements = [one if isinstance(one, str) else one.whole() for one in asked.parts]
        every, connection = range(len(statements)), await driver(self._session)
        values, named, binary = asked.values, asked.named, asked.binary
        return await piped(connection, statements, every, values, named, binary, by_client=True)

    async def end(self) -> None:
        """Leave the transaction to the session."""


async def driver(session: AsyncSession) -> psycopg.AsyncConnection:
    """Return the psycopg connection under this session's transaction."""
    connection = await session.connection()
    raw = await connection.get_raw_connection()
    assert raw.driver_connection is not None
    return cast("psycopg.AsyncConnection", raw.driver_connection)
