"""Streams a table as a CSV, part by part.

Each part is read by itself, so that a slow reader keeps no connection and no more than one part.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar, cast

from litestar import Response
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Stream

from cardsync.web.safe_texts import encoded

Row = TypeVar("Row")
# Others have their turn between parts, and a part has at most so many rows.
PART: Final = 1_000


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

    async def made(after: Row | None) -> tuple[Row | None, bytes]:
        # A file that is not read keeps the bytes of a part and its last row: the other rows of many
        # such files would make each collection of garbage take a quarter of a second.
        async with turn():
            rows = await read(after)
            last = rows[-1] if len(rows) == part else None
            return last, await asyncio.to_thread(_lines, rows, line)

    return _parts(encoded([columns]), await made(None), made)


async def _parts(
    head: bytes,
    first: tuple[Row | None, bytes],
    made: Callable[[Row], Awaitable[tuple[Row | None, bytes]]],
) -> AsyncIterator[bytes]:
    last, data = first
    yield head + data
    while last is not None:
        last, data = await made(last)
        yield data


def _lines(rows: Sequence[Row], line: Callable[[Row], Sequence[Any]]) -> bytes:
    return encoded([line(row) for row in rows])


def headers(name: str) -> dict[str, str]:
    """Return the header that gives the file its name."""
    return {"Content-Disposition": f'attachment; filename="{name}.csv"'}


def file(parts: AsyncIterator[bytes], name: str) -> Response[bytes]:
    """Answer with the parts as a file of that name."""
    return cast("Response[bytes]", Stream(parts, media_type="text/csv", headers=headers(name)))


def answer(what: str) -> ResponseSpec:
    """Describe the file to OpenAPI."""
    sentence = (
        f"{what}, with one line of names. A text that a spreadsheet would calculate begins with"
        " an apostrophe"
    )
    return ResponseSpec(bytes, description=sentence, media_type="text/csv", generate_examples=False)
