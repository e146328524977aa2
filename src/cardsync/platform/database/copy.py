"""Copies frames into the database and query results out of it by COPY."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import numpy as np
import polars as pl
import psycopg
from psycopg import AsyncCopy
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.sql import Composed
from sqlalchemy import text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import driver
from cardsync.platform.database.watched_cursors import watching

NULL: Final = "\\N"
_CHUNK: Final = 1 << 18


def encode(frame: pl.DataFrame) -> memoryview:
    """Return `frame` as COPY's text format. PostgreSQL parses it faster than CSV.

    This is CPU work: call it in a thread.

    With psycopg's `write_row`, a COPY takes 2.3 to 3.7 times as long; bench/fences.py measures it.
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
        buffer,
        include_header=False,
        separator="\t",
        quote_style="never",
        null_value=NULL,
    )
    return buffer.getbuffer()


def _is_apart(data: memoryview, frame: pl.DataFrame) -> bool:
    """Return whether the characters that separate cells and mark nulls occur nowhere else. Counting
    them is cheaper than escaping texts that hardly ever need it.
    """
    written = np.frombuffer(data, np.uint8)
    nulls = sum(frame.null_count().row(0))
    # Tabs and line ends are the only control characters in nearly all texts.
    parted = np.count_nonzero(written <= ord("\r")) == frame.width * frame.height
    return bool(parted and np.count_nonzero(written == ord("\\")) == nulls)


@asynccontextmanager
async def copying(
    connection: psycopg.AsyncConnection[Any], statement: str | Composed
) -> AsyncIterator[AsyncCopy]:
    """Begin a COPY and end it with the block.

    If a request ends while the COPY begins, the driver's connection stays in the middle of it and
    no other statement can use it: it is closed, and the pool opens another.
    """
    try:
        with watching(connection, statement):
            async with connection.cursor().copy(cast(Any, statement)) as copy:
                yield copy
    finally:
        if connection.info.transaction_status == TransactionStatus.ACTIVE:
            await connection.close()


async def copy_in(
    session: AsyncSession,
    table: str,
    columns: Sequence[str],
    data: memoryview,
) -> None:
    """COPY the text from `encode` into a temp table (row-level security refuses COPY into tenant
    tables).
    """
    sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    async with copying(await driver(session), sql) as copy:
        for start in range(0, len(data), _CHUNK):
            await copy.write(data[start : start + _CHUNK])


async def copy_chunks(session: AsyncSession, query: str) -> bytes:
    """Return the bytes of `COPY (query) TO STDOUT` as CSV, nulls as \\N; `query` must contain no
    outside text.
    """
    return await copy_bytes(session, f"COPY ({query}) TO STDOUT WITH (FORMAT csv, NULL '{NULL}')")


async def copy_bytes(session: AsyncSession, statement: str) -> bytes:
    """Return the bytes of a COPY TO STDOUT, read in one wait.

    With `async for`, a COPY takes 3.7 times as long; bench/fences.py measures it.
    """
    connection = await driver(session)
    out = io.BytesIO()

    def drain(copy: AsyncCopy) -> PQGen[None]:
        while part := (yield from copy._read_gen()):
            out.write(part)

    async with copying(connection, statement) as copy:
        # One wait reads all rows: `async for` passes each through the event loop, which costs more
        # than the COPY.
        await connection.wait(drain(copy))
    return out.getvalue()


async def copy_parts(
    session: AsyncSession, query: str, take: Callable[[bytes], None], size: int = 1 << 23
) -> None:
    """Pass the rows of a query, in the format of `copy_chunks`, to `take` in parts of about this
    many bytes, so that memory holds only a part. `take` runs between the parts, while the COPY
    waits.
    """
    connection = await driver(session)
    out = io.BytesIO()

    def drain(copy: AsyncCopy) -> PQGen[None]:
        while part := (yield from copy._read_gen()):
            out.write(part)
            # Each message of a COPY in CSV is one whole row.
            if out.tell() >= size:
                take(out.getvalue())
                out.seek(0)
                out.truncate()

    statement = f"COPY ({query}) TO STDOUT WITH (FORMAT csv, NULL '{NULL}')"
    async with copying(connection, statement) as copy:
        await connection.wait(drain(copy))
    if out.tell():
        take(out.getvalue())


_DIALECT: Final = postgresql.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]


async def with_values(session: AsyncSession, sql: str, values: Mapping[str, Any]) -> str:
    """Return the statement with its values written in by the driver, because COPY takes no
    parameters.
    """
    connection = await driver(session)
    bindable = str(text(sql).compile(dialect=_DIALECT))
    return psycopg.AsyncClientCursor(connection).mogrify(cast(Any, bindable), values)


def frame_of(data: bytes, schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
    """Return the bytes of `copy_chunks` as a frame. This is CPU work: call it in a thread for large
    data.
    """
    if not data:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(
        data,
        has_header=False,
        schema=schema,
        null_values=NULL,
        empty_string_is_null=False,
    )


async def types_of(session: AsyncSession, query: str) -> dict[str, tuple[str, int | None]]:
    """Return the type of each column of a query, and the decimal places of an amount that has a
    fixed number.
    """
    connection = await driver(session)
    async with connection.cursor() as cursor:
        await cursor.execute(cast(Any, f"SELECT * FROM ({query}) t LIMIT 0"))
        return {
            one.name: (_kind(connection, one.type_code), one.scale)
            for one in cursor.description or []
        }


def _kind(connection: psycopg.AsyncConnection[Any], code: int) -> str:
    kind = connection.adapters.types.get(code)
    # An array is recognized by the type of its items, and stays text.
    return kind.name if kind is not None and kind.oid == code else "text"
