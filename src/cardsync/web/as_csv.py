"""A table as a CSV that streams: parts of rows come in, encoded parts of the file go out.

Each part is read by itself, so that a slow reader keeps no connection and no more than one part.
"""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar, cast

from litestar import Response
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Stream

Row = TypeVar("Row")
# Others have their turn between parts, and a part has at most so many rows.
PART: Final = 1_000
# A spreadsheet would calculate a text that begins with one of these.
CALCULATED: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


async def streamed(
    turn: Callable[[], AbstractAsyncContextManager[None]],
    columns: Sequence[str],
    read: Callable[[Row | None], Awaitable[list[Row]]],
    line: Callable[[Row], Sequence[Any]],
    part: int = PART,
) -> AsyncIterator[bytes]:
    """Return the file in parts, each read and written in a turn. The first one is there already, so
    that a wrong filter is refused before anything is sent; `read` returns the rows behind a row.
    """

    async def made(after: Row | None) -> tuple[list[Row], bytes]:
        async with turn():
            rows = await read(after)
            return rows, await asyncio.to_thread(_lines, rows, line)

    return _parts(encoded([columns]), await made(None), made, part)


async def _parts(
    head: bytes,
    first: tuple[list[Row], bytes],
    made: Callable[[Row], Awaitable[tuple[list[Row], bytes]]],
    part: int,
) -> AsyncIterator[bytes]:
    rows, data = first
    yield head + data
    while len(rows) == part:
        rows, data = await made(rows[-1])
        yield data


def _lines(rows: Sequence[Row], line: Callable[[Row], Sequence[Any]]) -> bytes:
    return encoded([[safe(value) for value in line(row)] for row in rows])


def safe(value: Any) -> Any:
    """Return the value; a text that a spreadsheet would calculate begins with an apostrophe."""
    if isinstance(value, str) and value.startswith(CALCULATED) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def encoded(rows: Sequence[Sequence[Any]]) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    return file.getvalue().encode()


def headers(name: str) -> dict[str, str]:
    """Return the header that gives the file its name."""
    return {"Content-Disposition": f'attachment; filename="{name}.csv"'}


def file(parts: AsyncIterator[bytes], name: str) -> Response[bytes]:
    """Answer with the parts as a file of that name."""
    return cast("Response[bytes]", Stream(parts, media_type="text/csv", headers=headers(name)))


def answer(what: str) -> ResponseSpec:
    """Describe the file to OpenAPI."""
    told = f"{what}, with one line of names. A text that a spreadsheet would calculate begins with an apostrophe"
    return ResponseSpec(bytes, description=told, media_type="text/csv", generate_examples=False)
