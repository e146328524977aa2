"""Reads rows in a session's transaction or in a reading, for operations that both call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, overload

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.concurrency import at_once
from cardsync.platform.database.columns import Base
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import Numbered, Page, Paging, cut

Source: TypeAlias = AsyncSession | Reading
Rows = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[Sequence[Any]]]]
"""A function that runs a statement with its values and returns its rows."""

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
T = TypeVar("T", bound=Base)


def rows_of(source: Source) -> Rows:
    if isinstance(source, Reading):
        return source.rows

    async def rows(statement: str, values: Mapping[str, object]) -> Sequence[Sequence[Any]]:
        return (await source.execute(text(statement), dict(values))).all()

    return rows


def rows_once(source: Source) -> Rows:
    """Return a function like `rows_of`, with which a reading runs a statement only once, because
    its values are always the same.
    """
    return source.once if isinstance(source, Reading) else rows_of(source)


def rows_last(source: Source) -> Rows:
    """Return a function like `rows_of`, whose message ends a reading."""
    if not isinstance(source, Reading):
        return rows_of(source)

    async def rows(statement: str, values: Mapping[str, object]) -> Sequence[Sequence[Any]]:
        [found] = await source.together([statement], values, last=True)
        return found

    return rows


async def found(
    source: Source, statement: str, values: Mapping[str, Any]
) -> Sequence[Sequence[Any]]:
    """Return the rows of a statement, as a read of `each_of`."""
    return await rows_of(source)(statement, values)


async def rows_as(
    source: Source,
    kind: type[T],
    seller_id: int,
    tail: str,
    rows_by: Callable[[Source], Rows] = rows_of,
    /,
    **values: object,
) -> list[T]:
    """Return the seller's rows of a table as objects, as the database has them. Those of a reading
    belong to no session; with `rows_last` for `rows_by`, the reading ends.
    """
    names = [column.name for column in kind.__table__.columns]
    statement = (
        f"SELECT {', '.join(names)} FROM {kind.__tablename__} WHERE seller_id = :seller {tail}"
    )
    values |= {"seller": seller_id}
    if not isinstance(source, Reading):
        read = select(kind).from_statement(text(statement))
        return [*await source.scalars(read.execution_options(populate_existing=True), values)]
    rows = await rows_by(source)(statement, values)
    return [kind(**dict(zip(names, row, strict=True))) for row in rows]


async def row_as(
    source: Source, kind: type[T], seller_id: int, tail: str, /, **values: object
) -> T | None:
    """Return the first of the seller's rows of a table as an object, or None without rows."""
    return next(iter(await rows_as(source, kind, seller_id, tail, **values)), None)


async def newest(
    source: Source,
    kind: type[T],
    seller_id: int,
    before: int | None,
    most: int,
    where: str = "",
    /,
    **values: object,
) -> Page[T]:
    """Return the seller's newest rows of a table before an id."""
    if before is not None:
        where += " AND id < :before"
        values["before"] = before
    tail = f"{where} ORDER BY id DESC LIMIT :most"
    rows = await rows_as(source, kind, seller_id, tail, **values, most=most + 1)
    return cut(rows, most, attrgetter("id"))


async def numbered(
    source: Source,
    kind: type[T],
    seller_id: int,
    paging: Paging,
    where: str = "",
    /,
    **values: object,
) -> Numbered[T]:
    """Return a page of the seller's rows of a table, newest first. Rows are counted only if the
    page's own do not give their number.
    """
    tail = f"{where} ORDER BY id DESC LIMIT :limit OFFSET :offset"
    rows = await rows_as(source, kind, seller_id, tail, **values, **paging.values)
    total = paging.offset + len(rows)
    if len(rows) == paging.per_page or (paging.offset and not rows):
        count = f"SELECT count(*) FROM {kind.__tablename__} WHERE seller_id = :seller {where}"
        [[total]] = await rows_of(source)(count, {"seller": seller_id, **values})
    return Numbered(rows, paging.of(total))


@overload
async def each_of(
    source: Source, first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], /
) -> tuple[A, B]: ...
@overload
async def each_of(
    source: Source,
    first: Coroutine[Any, Any, A],
    second: Coroutine[Any, Any, B],
    third: Coroutine[Any, Any, C],
    /,
) -> tuple[A, B, C]: ...
@overload
async def each_of(
    source: Source,
    first: Coroutine[Any, Any, A],
    second: Coroutine[Any, Any, B],
    third: Coroutine[Any, Any, C],
    fourth: Coroutine[Any, Any, D],
    /,
) -> tuple[A, B, C, D]: ...
@overload
async def each_of(source: Source, /, *reads: Coroutine[Any, Any, A]) -> tuple[A, ...]: ...
async def each_of(source: Source, /, *reads: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
    """Return the results of reads of the source: of a reading they share messages, and a session
    runs them in turn.
    """
    if not isinstance(source, Reading):
        try:
            return tuple([await read for read in reads])
        finally:
            # After a failure, the later reads have not begun.
            for read in reads:
                read.close()
    return await at_once(*reads)
