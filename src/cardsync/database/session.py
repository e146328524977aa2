"""The database: engine and pools go in; tenant-scoped sessions, set-wise reads and COPY come out.

Every transaction on tenant tables sets `app.seller_id`, which row-level security compares; the role
cannot bypass it. `polled` reads an agent's poll in one round trip; everything else takes a session.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any, cast

import numpy as np
import polars as pl
import psycopg
from psycopg import AsyncCopy
from psycopg.abc import PQGen
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import CursorResult, text
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)

from cardsync.database.connections import (
    CONNECT_SECONDS,
    RECONNECT_SECONDS,
    BoundedConnection,
    Connection,
    look_before_use,
    still_there,
)
from cardsync.database.hot_reads import PolledReads
from cardsync.database.seller_slots import Turns
from cardsync.database.snapshot_reads import Readings
from cardsync.database.urls import engine_url, libpq_url

NULL = "\\N"
_COPY_CHUNK = 1 << 18
_HOT_WAIT_SECONDS = 10


@dataclass(frozen=True)
class Database:
    """A process has one object; `open()` makes it."""

    url: str
    engine: AsyncEngine
    sessions: async_sessionmaker[AsyncSession]
    hot: AsyncConnectionPool[Connection]
    polled: PolledReads
    readings: Readings
    turns: Turns = field(default_factory=Turns)

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
    ) -> AsyncIterator[Database]:
        """Open the pools. No wait is longer than `seconds`, and no wait of the polled reads longer
        than `hot_seconds`.
        """
        plain = libpq_url(url)
        engine = create_async_engine(
            engine_url(plain),
            pool_size=pool,
            max_overflow=0,
            hide_parameters=True,
            connect_args={
                "async_creator_fn": BoundedConnection.within(seconds).connect,
                "connect_timeout": CONNECT_SECONDS,
            },
        )
        look_before_use(engine)
        hot: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            plain,
            connection_class=BoundedConnection.within(hot_seconds),
            min_size=0,
            max_size=max(1, hot_pool),
            # A polling agent comes again soon: an early 503 serves it better than a long wait while
            # the database is away.
            timeout=min(_HOT_WAIT_SECONDS, hot_seconds),
            reconnect_timeout=RECONNECT_SECONDS,
            kwargs={"autocommit": True, "connect_timeout": CONNECT_SECONDS},
            check=still_there,
            open=False,
            name="hot",
        )
        readings = Readings(plain, read_pool, seconds)
        await hot.open()
        await readings.pool.open()
        try:
            sessions = async_sessionmaker(engine, expire_on_commit=False)
            yield cls(plain, engine, sessions, hot, PolledReads(hot), readings)
        finally:
            await readings.pool.close()
            await hot.close()
            await engine.dispose()

    @asynccontextmanager
    async def tenant(
        self, seller_id: int, *, snapshot: bool = False
    ) -> AsyncIterator[AsyncSession]:
        """Open one transaction in one seller's scope; it commits on leaving, and rolls back on an
        exception.

        With `snapshot`, every statement sees the database as of the first one (repeatable read).
        """
        async with self.sessions() as session, session.begin():
            if snapshot:
                await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            await enter_tenant(session, seller_id)
            yield session

    @asynccontextmanager
    async def bounded(
        self, seller_id: int, seconds: float, *, snapshot: bool = False
    ) -> AsyncIterator[AsyncSession]:
        """Open the same for work that may be long: a seller has few such transactions at a time, no
        statement takes longer than this, and no wait for a lock longer than half of it.
        """
        async with self.turns.of(seller_id), self.tenant(seller_id, snapshot=snapshot) as session:
            await session.execute(
                text(_BOUNDS), {"most": f"{seconds:f}s", "lock": f"{seconds / 2:f}s"}
            )
            yield session

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[AsyncSession]:
        """Open one transaction on tables that belong to no seller; tenant tables look empty from
        here.
        """
        async with self.sessions() as session, session.begin():
            yield session


_BOUNDS = (
    "SELECT set_config('statement_timeout', :most, true), set_config('lock_timeout', :lock, true)"
)


async def enter_tenant(session: AsyncSession, seller_id: int) -> None:
    """Set the seller of this transaction.

    The statement holds a literal that we format ourselves, because this form also reaches
    distributed nodes.
    """
    await session.execute(text(f"SET LOCAL app.seller_id = '{int(seller_id)}'"))


async def run(session: AsyncSession, statement: str, values: Mapping[str, Any]) -> int:
    """Run a statement and return how many rows it wrote; it gets those of `values` that it
    names.
    """
    bound = {name: value for name, value in values.items() if f":{name}" in statement}
    result = await session.execute(text(statement), bound)
    assert isinstance(result, CursorResult)
    return result.rowcount


async def driver(session: AsyncSession) -> psycopg.AsyncConnection[Any]:
    """Return the psycopg connection under this session's transaction."""
    connection = await session.connection()
    raw = await connection.get_raw_connection()
    assert raw.driver_connection is not None
    return cast("psycopg.AsyncConnection[Any]", raw.driver_connection)


def encode(frame: pl.DataFrame) -> memoryview:
    """Return `frame` as the text that COPY reads; PostgreSQL parses it faster than CSV.

    This is CPU work: call it in a thread.
    """
    data = _written(frame)
    if _is_apart(data, frame):
        return data
    return _written(
        frame.with_columns(
            pl.col(pl.String).str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))
        )
    )


_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def _written(frame: pl.DataFrame) -> memoryview:
    buffer = io.BytesIO()
    frame.write_csv(
        buffer, include_header=False, separator="\t", quote_style="never", null_value=NULL
    )
    return buffer.getbuffer()


def _is_apart(data: memoryview, frame: pl.DataFrame) -> bool:
    """Return whether the characters that separate cells and mark nulls occur nowhere else: counting
    them is cheaper than escaping texts that hardly ever need it.
    """
    written = np.frombuffer(data, np.uint8)
    nulls = sum(frame.null_count().row(0))
    # Tabs and line ends are the only characters of their kind in nearly all texts.
    parted = np.count_nonzero(written <= ord("\r")) == frame.width * frame.height
    return bool(parted and np.count_nonzero(written == ord("\\")) == nulls)


async def copy_in(
    session: AsyncSession, table: str, columns: Sequence[str], data: memoryview
) -> None:
    """COPY the text that `encode` made into a temp table (row-level security refuses COPY into
    tenant tables).
    """
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    async with (await driver(session)).cursor().copy(sql) as copy:
        for start in range(0, len(data), _COPY_CHUNK):
            await copy.write(data[start : start + _COPY_CHUNK])


async def copy_chunks(session: AsyncSession, query: str) -> bytes:
    """Return the bytes of `COPY (query) TO STDOUT` as CSV, nulls as \\N; `query` holds no outside
    text.
    """
    return await copy_bytes(session, f"COPY ({query}) TO STDOUT WITH (FORMAT csv, NULL '{NULL}')")


async def copy_bytes(session: AsyncSession, statement: str) -> bytes:
    connection = await driver(session)
    out = io.BytesIO()

    def drain(copy: AsyncCopy) -> PQGen[None]:
        while part := (yield from copy._read_gen()):
            out.write(part)

    async with connection.cursor().copy(statement) as copy:
        # One wait serves all rows: `async for` takes each of them through the event loop, which
        # costs more than the COPY.
        await connection.wait(drain(copy))
    return out.getvalue()


_BLOCK = 14
"""Cards are sent in blocks of 2^14 ids: large enough to cost nothing, small enough for the
connection's buffer, which never shrinks.
"""


# Without this setting the planner would sort all rows for a few groups, and on disk where they are
# many.
HASHED = "SELECT set_config('enable_sort', 'off', true)"
# The planner takes passing rows between processes as dearer than reading and converting them.
SHARED = (
    f"{HASHED}, set_config('parallel_tuple_cost', '0', true),"
    " set_config('parallel_setup_cost', '0', true)"
)


async def integer_columns(
    session: AsyncSession,
    expressions: Mapping[str, str],
    source: str,
    key: str,
    *,
    planned: str = HASHED,
) -> dict[str, np.ndarray[Any, Any]]:
    """Return `SELECT expressions FROM source` as arrays; every expression is a bigint or integer
    that is never null, and `key` is one of them.

    The result's rows hold arrays, because one row of the result for every row read costs more than
    the reading. Nothing in the query is outside text. SHARED suits a reading that has the machine
    to itself; an empty text leaves the planning of a read of a few rows as it is.
    """
    listed = ", ".join(f"array_agg({expression})" for expression in expressions.values())
    query = f"SELECT {listed} FROM {source} GROUP BY {key} >> {_BLOCK}"
    data = memoryview(
        await _copied_as_planned(session, f"COPY ({query}) TO STDOUT WITH (FORMAT binary)", planned)
    )
    parts: dict[str, list[np.ndarray[Any, Any]]] = {
        name: [np.empty(0, np.int64)] for name in expressions
    }
    at = _COPY_HEADER_BYTES
    while int.from_bytes(data[at : at + 2], signed=True) == len(expressions):
        at += 2
        for name in expressions:
            size = int.from_bytes(data[at : at + 4])
            parts[name].append(_integers(data[at + 4 : at + 4 + size]))
            at += 4 + size
    return {name: np.concatenate(blocks) for name, blocks in parts.items()}


async def _copied_as_planned(session: AsyncSession, statement: str, planned: str) -> bytes:
    """Run the COPY with settings that hold for this statement alone."""
    if not planned:
        return await copy_bytes(session, statement)
    await session.execute(text("SAVEPOINT planned"))
    await session.execute(text(planned))
    data = await copy_bytes(session, statement)
    await session.execute(text("ROLLBACK TO SAVEPOINT planned"))
    return data


_COPY_HEADER_BYTES = 19
_ARRAY_HEADER_BYTES = 20
_WIDTHS = {20: 8, 23: 4}


def _integers(array: memoryview) -> np.ndarray[Any, Any]:
    """Return the elements of a one-dimensional integer array as PostgreSQL sends it: flags, type
    and size, then the length and value of each element.
    """
    width = _WIDTHS[int.from_bytes(array[8:12])]
    element = np.dtype([("length", ">i4"), ("value", f">i{width}")])
    return np.frombuffer(array, element, offset=_ARRAY_HEADER_BYTES)["value"].astype(np.int64)


def frame_of(data: bytes, schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
    """Return the bytes of `copy_chunks` as a frame. This is CPU work: call it in a thread for large
    data.
    """
    if not data:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(
        data, has_header=False, schema=schema, null_values=NULL, empty_string_is_null=False
    )
