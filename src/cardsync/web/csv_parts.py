"""Writes a table as CSV in parts; each part is a heavy read of its own (`heavy_work.py`).

While a slow client reads, the server keeps one part in memory, but no connection and no process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime
from typing import Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from cardsync.access.caller import Caller
from cardsync.platform import clock
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.kit.row_pages import Page
from cardsync.platform.settings import Settings
from cardsync.web.heavy_work import HeavyWork

P = ParamSpec("P")
# The most rows in a part. Other heavy reads can run between two parts.
PART: Final = 1_000


class Part(NamedTuple):
    """The lines of some rows. `after` is the key of the last row, from which the next part
    continues; None in the last part.
    """

    lines: bytes
    after: int | None


Row = TypeVar("Row")
# Makes the part that begins after this key. The key 0 means the first part.
Make = Callable[Concatenate[Database, Caller, Settings, datetime, int, P], Awaitable[Part]]


async def streamed(
    heavy: HeavyWork,
    caller: Caller,
    table: CsvTable,
    make: Make[P],
    *values: P.args,
    **options: P.kwargs,
) -> AsyncIterator[bytes]:
    """Return the file in parts. The first part is made before this function returns, so that a
    wrong filter is refused before anything is sent.
    """

    async def made(after: int) -> Part:
        return await heavy.read(make, caller, Work.FILE, clock.now(), after, *values, **options)

    return _all(table.file([]), await made(0), made)


async def _all(
    head: bytes, part: Part, made: Callable[[int], Awaitable[Part]]
) -> AsyncIterator[bytes]:
    yield head + part.lines
    while part.after is not None:
        part = await made(part.after)
        yield part.lines


async def part_of(
    table: CsvTable, page: Page[Row], body: Callable[[Row], object] | None = None
) -> Part:
    return Part(await lines_of(table, page.rows, body), page.next)


async def lines_of(
    table: CsvTable, rows: Iterable[Row], body: Callable[[Row], object] | None = None
) -> bytes:
    """Return the CSV lines of the rows. `body` converts a row to the struct with the table's
    fields.
    """
    return await asyncio.to_thread(table.lines, rows if body is None else map(body, rows))
