"""Reads many integers at once, as one array for each SQL expression.

PostgreSQL sends arrays of integers in blocks and in binary, which numpy parses without a loop.
Small values share one integer, because each array costs the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.copy import copy_bytes
from cardsync.platform.database.transaction_settings import grouped_by_hash


class Packed(NamedTuple):
    """The values packed in one integer: a place in a list, the first letter of a text, two bits."""

    place: pl.Expr
    letter: pl.Expr
    bits: tuple[pl.Expr, pl.Expr]


def packed(*, place: str, letter: str, bits: tuple[str, str]) -> str:
    """Return four SQL expressions packed into one integer.

    Without it a read of 120,000 cards takes 1.1 to 1.7 times as long; bench/fences.py measures it.
    """
    one, other = bits
    return (
        f"coalesce({place}, 0) * 512 + ascii({letter}) * 4 + {one}::integer * 2 + {other}::integer"
    )


def unpacked(column: str) -> Packed:
    """Return the packed values; the place is 0 for null, the letter is a character code."""
    value = pl.col(column)
    return Packed(value // 512, value // 4 % 128, (value // 2 % 2 == 1, value % 2 == 1))


_BLOCK = 14
"""Cards are sent in blocks of 2^14 ids: large enough to cost nothing, small enough for the
connection's buffer, which never shrinks.
"""


async def integer_columns(
    session: AsyncSession,
    expressions: Mapping[str, str],
    source: str,
    key: str,
    *,
    few: bool = False,
) -> dict[str, np.ndarray[Any, Any]]:
    """Return `SELECT expressions FROM source` as arrays. Every expression must be a bigint or
    integer that is never null, and `key` must be one of them.

    Each row of the result holds arrays, because one row per card costs more than the read itself.
    The query must contain no outside text. A read of a `few` rows does not change the planner's
    settings.

    120,000 cards as rows of CSV take 1.1 to 1.5 times as long; bench/fences.py measures it.
    """
    listed = ", ".join(f"array_agg({expression})" for expression in expressions.values())
    query = f"SELECT {listed} FROM {source} GROUP BY {key} >> {_BLOCK}"
    statement = f"COPY ({query}) TO STDOUT WITH (FORMAT binary)"
    data = memoryview(await (copy_bytes if few else _copied_by_hash)(session, statement))
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


async def _copied_by_hash(session: AsyncSession, statement: str) -> bytes:
    """Run the COPY with a planner setting for this statement alone."""
    await session.execute(text("SAVEPOINT planned"))
    await session.execute(text(grouped_by_hash()))
    data = await copy_bytes(session, statement)
    await session.execute(text("ROLLBACK TO SAVEPOINT planned"))
    return data


_COPY_HEADER_BYTES = 19
_ARRAY_HEADER_BYTES = 20
_WIDTHS = {20: 8, 23: 4}


def _integers(array: memoryview) -> np.ndarray[Any, Any]:
    """Parse a one-dimensional integer array in PostgreSQL's binary format: flags, type and size,
    then the length and value of each element.
    """
    width = _WIDTHS[int.from_bytes(array[8:12])]
    element = np.dtype([("length", ">i4"), ("value", f">i{width}")])
    return np.frombuffer(array, element, offset=_ARRAY_HEADER_BYTES)["value"].astype(np.int64)
