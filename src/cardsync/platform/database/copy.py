"""Copies rows into temp tables and reads queries by COPY: `new_table` and `write_rows` take a
frame, `read_rows` returns a frame. Only this module knows the formats of a COPY.

`read_integers` reads one array for each column: PostgreSQL sends arrays of integers in blocks and
in binary, and numpy reads them without a loop.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Final, cast

import numpy as np
import polars as pl
import psycopg
from psycopg import AsyncCopy
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.bound_text import named
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.session import driver
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.database.transaction_settings import grouped_by_hash, many_rows_pass
from cardsync.platform.database.watched_cursors import watching

_NULL: Final = "\\N"
_CHUNK: Final = 1 << 18


async def new_table(
    session: AsyncSession,
    table: str,
    rows: pl.DataFrame,
    types: Mapping[str, str],
    *,
    analyzed: bool = False,
) -> None:
    """Create a temp table of the rows, which exists until the transaction ends. A column is text
    unless `types` has its type. With `analyzed`, the planner knows the number of rows.
    """
    columns = ", ".join(f'"{name}" {types.get(name, "text")}' for name in rows.columns)
    await session.execute(text(f"CREATE TEMP TABLE {table} ({columns}) ON COMMIT DROP"))
    await write_rows(session, table, rows)
    if analyzed:
        await session.execute(text(f"ANALYZE {table}"))


async def write_rows(session: AsyncSession, table: str, rows: pl.DataFrame) -> None:
    """Copy the rows into a temp table (row-level security refuses COPY into tenant tables)."""
    data = await asyncio.to_thread(encode, rows)
    columns = ", ".join(f'"{name}"' for name in rows.columns)
    async with _copying(await driver(session), f"COPY {table} ({columns}) FROM STDIN") as copy:
        for start in range(0, len(data), _CHUNK):
            await copy.write(data[start : start + _CHUNK])


def encode(frame: pl.DataFrame) -> memoryview:
    """Return `frame` as the text that COPY reads; PostgreSQL parses it faster than CSV.

    This is CPU work: call it in a thread. A COPY by psycopg's `write_row` takes 2.3 to 3.7 times as
    long; bench/fences.py measures it.
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
        null_value=_NULL,
    )
    return buffer.getbuffer()


def _is_apart(data: memoryview, frame: pl.DataFrame) -> bool:
    """Return whether no text contains a character that separates cells or marks nulls. To count
    these characters is cheaper than to escape texts, which seldom contain them.
    """
    written = np.frombuffer(data, np.uint8)
    nulls = sum(frame.null_count().row(0))
    # Nearly all texts contain no character up to `\r`, so all characters up to `\r` are separators.
    parted = np.count_nonzero(written <= ord("\r")) == frame.width * frame.height
    return bool(parted and np.count_nonzero(written == ord("\\")) == nulls)


@asynccontextmanager
async def _copying(
    connection: psycopg.AsyncConnection[object], statement: str
) -> AsyncIterator[AsyncCopy]:
    """Begin a COPY and end it with the block.

    If a request ends while the COPY begins, the connection is still in the COPY and cannot run
    another statement: it is closed, and the pool opens another.
    """
    try:
        with watching(connection, statement):
            async with connection.cursor().copy(cast(Any, statement)) as copy:
                yield copy
    finally:
        if connection.info.transaction_status == TransactionStatus.ACTIVE:
            await connection.close()


Schema = Mapping[str, pl.DataType | type[pl.DataType]]


async def read_rows(
    session: Source,
    query: str,
    schema: Schema,
    values: Mapping[str, object] | None = None,
    *,
    few: bool = False,
    around: tuple[str, str] | None = None,
) -> pl.DataFrame:
    """Return the rows of a query as a frame of that schema. A query without `values` must not
    contain text from outside. `around` has a setting of the planner and the statement that undoes
    it. A reading receives integers as arrays, unless they are `few`; other columns must be few.
    """
    if isinstance(session, Reading):
        if not few and set(schema.values()) == {pl.Int64}:
            return await _read_arrays(session, query, schema, values or {}, (around or ())[:1])
        return pl.DataFrame(await session.rows(query, values or {}), schema, orient="row")
    bound = query if values is None else await with_values(session, query, values)
    if around is not None:
        await session.execute(text(around[0]))
    data = await read_bytes(session, _as_csv(bound))
    if around is not None:
        await session.execute(text(around[1]))
    return await asyncio.to_thread(_frame, data, schema)


async def read_parts(
    session: AsyncSession,
    query: str,
    schema: Schema,
    take: Callable[[pl.DataFrame], None],
    size: int = 1 << 23,
) -> None:
    """Pass the rows of a query to `take` in parts of about `size` bytes, so that memory contains
    only one part. The COPY waits while `take` runs.
    """
    await _drain(session, _as_csv(query), lambda part: take(_frame(part, schema)), size)


async def read_bytes(session: AsyncSession, statement: str) -> bytes:
    """Return the bytes that a `COPY (query) TO STDOUT` sends."""
    parts = list[bytes]()
    await _drain(session, statement, parts.append)
    return b"".join(parts)


def _as_csv(query: str) -> str:
    # In the CSV of a COPY, null is an empty cell, and an empty text is `""`.
    return f"COPY ({query}) TO STDOUT WITH (FORMAT csv)"


async def _drain(
    session: AsyncSession, statement: str, take: Callable[[bytes], None], size: float = inf
) -> None:
    """Pass the output of a COPY to `take`, as a whole or in parts of whole rows.

    `async for` over the rows takes 3.7 times as long; bench/fences.py measures it.
    """
    connection = await driver(session)
    out = io.BytesIO()

    def drain(copy: AsyncCopy) -> PQGen[None]:
        written = 0
        while part := (yield from copy._read_gen()):
            written += out.write(part)
            # Each message of a COPY is a whole row.
            if written >= size:
                take(out.getvalue())
                out.seek(0)
                out.truncate()
                written = 0

    async with _copying(connection, statement) as copy:
        # One wait is enough for all rows: `async for` passes each row through the event loop, which
        # costs more than the COPY.
        await connection.wait(drain(copy))
    if out.tell():
        take(out.getvalue())


async def with_values(session: AsyncSession, sql: str, values: Mapping[str, object]) -> str:
    """Return the statement with its values as literals, written by the driver, because COPY takes
    no parameters.
    """
    connection = await driver(session)
    return psycopg.AsyncClientCursor(connection).mogrify(cast(Any, named(sql)), values)


def _frame(data: bytes, schema: Schema) -> pl.DataFrame:
    if not data:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(data, has_header=False, schema=schema)


# Stands for null in an array, whose integers all have the same width.
_ABSENT: Final = -(2**63)
_BLOCK: Final = 14
"""Cards are sent in blocks of 2^14 ids: large enough to cost nothing, small enough for the
connection's buffer, which never shrinks.
"""


async def read_integers(
    session: Source,
    expressions: Mapping[str, str],
    source: str,
    key: str,
    values: Mapping[str, object] | None = None,
    *,
    few: bool = False,
) -> pl.DataFrame:
    """Return `SELECT expressions FROM source` as a frame. Each expression is a bigint or integer
    without nulls, and `key` is one of the expressions.

    PostgreSQL sends arrays, because one result row per card costs more than reading the cards. A
    source without `values` must not contain text from outside. With `few` rows, the planner's
    settings are unchanged, and a reading receives no arrays. It does without COPY, so that the
    statement shares a message with others.

    120,000 cards as rows of CSV take 1.1 to 1.5 times as long; bench/fences.py measures it.
    """
    if isinstance(session, Reading) and few:
        columns = ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())
        schema = dict.fromkeys(expressions, pl.Int64)
        return await read_rows(session, f"SELECT {columns} FROM {source}", schema, values, few=True)
    listed = ", ".join(f"array_agg({expression})" for expression in expressions.values())
    if isinstance(session, Reading):
        query = f"SELECT {listed} FROM {source} GROUP BY {key} >> {_BLOCK}"
        settings = [grouped_by_hash()]
        return _joined(expressions, await _arrays(session, query, values or {}, settings))
    bound = source if values is None else await with_values(session, source, values)
    query = f"SELECT {listed} FROM {bound} GROUP BY {key} >> {_BLOCK}"
    statement = f"COPY ({query}) TO STDOUT WITH (FORMAT binary)"
    data = memoryview(await (read_bytes if few else _read_by_hash)(session, statement))
    return _joined(expressions, _blocks(data, len(expressions)))


def _blocks(data: memoryview, columns: int) -> Iterator[list[memoryview]]:
    """Yield the values of each row of a binary COPY."""
    at = _COPY_HEADER_BYTES
    while int.from_bytes(data[at : at + 2], signed=True) == columns:
        at += 2
        row = list[memoryview]()
        for _ in range(columns):
            size = int.from_bytes(data[at : at + 4])
            row.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        yield row


async def _read_arrays(
    reading: Reading,
    query: str,
    schema: Schema,
    values: Mapping[str, object],
    settings: Sequence[str],
) -> pl.DataFrame:
    """Return the rows of a query whose columns are integers or null, read as one array of each
    column.
    """
    names = [f"c{place}" for place in range(len(schema))]
    listed = ", ".join(f"array_agg(coalesce({name}, '{_ABSENT}'::bigint))" for name in names)
    arrays = f"SELECT {listed} FROM ({query}) AS t ({', '.join(names)}) HAVING count(*) > 0"
    found = _joined(schema, await _arrays(reading, arrays, values, settings))
    return found.with_columns(
        pl.when(pl.col(name) != _ABSENT).then(name).alias(name) for name in schema
    )


async def _arrays(
    reading: Reading,
    query: str,
    values: Mapping[str, object],
    settings: Sequence[str],
) -> list[TupleRow]:
    """Return the rows of a query, which are arrays. The planner's settings are those of this
    statement.
    """
    before = ["SAVEPOINT planned", many_rows_pass(), *settings]
    statements = [*before, query, "ROLLBACK TO SAVEPOINT planned"]
    found = await reading.together(statements, values, binary=len(before))
    return found[len(before)]


def _joined(names: Iterable[str], blocks: Iterable[Iterable[bytes | memoryview]]) -> pl.DataFrame:
    """Return the columns whose blocks of values are arrays of integers."""
    parts: dict[str, list[np.ndarray[Any, Any]]] = {name: [np.empty(0, np.int64)] for name in names}
    for block in blocks:
        for array, part in zip(block, parts.values(), strict=True):
            part.append(_integers(array))
    return pl.DataFrame({name: np.concatenate(part) for name, part in parts.items()})


async def _read_by_hash(session: AsyncSession, statement: str) -> bytes:
    """Run the COPY with grouping by hash, which is set only for this statement."""
    await session.execute(text("SAVEPOINT planned"))
    await session.execute(text(grouped_by_hash()))
    data = await read_bytes(session, statement)
    await session.execute(text("ROLLBACK TO SAVEPOINT planned"))
    return data


_COPY_HEADER_BYTES = 19
_ARRAY_HEADER_BYTES = 20
_WIDTHS = {20: 8, 23: 4}


def _integers(array: bytes | memoryview) -> np.ndarray[Any, Any]:
    """Return the elements of a one-dimensional integer array as PostgreSQL sends it: flags, type
    and size, then the length and value of each element.
    """
    width = _WIDTHS[int.from_bytes(array[8:12])]
    element = np.dtype([("length", ">i4"), ("value", f">i{width}")])
    return np.frombuffer(array, element, offset=_ARRAY_HEADER_BYTES)["value"].astype(np.int64)


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


def _kind(connection: psycopg.AsyncConnection[object], code: int) -> str:
    kind = connection.adapters.types.get(code)
    # For an array, `types` returns the type of its items; an array is read as text.
    return kind.name if kind is not None and kind.oid == code else "text"
