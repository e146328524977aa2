"""Finds the products of new cards while the first new cards are already being written.

The catalog's part with the file's sets is read once, as soon as the file is parsed. The rows are
matched a few slabs at a time, in the order of writing. So writing starts before all rows are
matched, and memory holds the products of only a few slabs.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Coroutine
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

import polars as pl

from cardsync.catalog import products
from cardsync.platform.database.session import Database
from cardsync.stock.cards.write import Slab
from cardsync.stock.search.folding import search_columns

T = TypeVar("T")

SLABS_AT_ONCE = 4
# Few slabs are matched first, because the writers wait for them.
SLABS_AT_FIRST = 2


class NewProducts:
    """An async context manager that finds products in tasks; the end of its block cancels running
    tasks.
    """

    def __init__(
        self,
        database: Database,
        parsed: pl.DataFrame,
        stored: pl.DataFrame,
    ) -> None:
        self._database = database
        self._tasks: set[asyncio.Task[object]] = set()
        # The task that was started last. Only the slabs that wait for a task's products keep a
        # reference to the task.
        self._last: asyncio.Task[pl.DataFrame] | None = None
        self._matches: Counter[str] = Counter()
        # All custom listings count as new here, because they share ids with each other and with
        # cards, and have no marketplace_id yet.
        new = parsed["custom"] | ~parsed["listing_id"].is_in(stored["marketplace_id"].implode())
        sets = parsed.select("product_line", "set_name").filter(new)
        self._offered = self._begin(products.offered(database, sets)) if sets.height else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def found_for(self, slabs: list[Slab]) -> list[Slab]:
        """Start tasks that find the products of the slabs with new cards, and return all slabs with
        their tasks, slabs with new cards first.
        """
        made: list[Slab] = []
        new = deque(slab for slab in slabs if slab.is_new)
        while new:
            count = SLABS_AT_ONCE if made else SLABS_AT_FIRST
            some = [new.popleft() for _ in range(min(count, len(new)))]
            assert self._offered is not None
            self._last = self._begin(self._part(some, self._offered, self._last))
            made += _with_parts(some, self._last)
        self._offered = None
        return made + [slab for slab in slabs if not slab.is_new]

    async def matches(self) -> dict[str, int]:
        """Return the number of new cards by match: matched, provisional or ambiguous."""
        if self._last is not None:
            await self._last
        return self._matches

    def _begin(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        # The catalog is large, so finished tasks, which have a reference to it, are dropped.
        task.add_done_callback(self._tasks.discard)
        return task

    async def _part(
        self,
        slabs: list[Slab],
        offered: asyncio.Task[pl.DataFrame],
        before: asyncio.Task[pl.DataFrame] | None,
    ) -> pl.DataFrame:
        if before is not None:
            await before
        printed = await asyncio.to_thread(_printings, slabs)
        found = await products.found(self._database, printed, await offered)
        printed_words = await asyncio.to_thread(_with_words, printed, found)
        self._matches.update(dict(printed_words["match"].value_counts().iter_rows()))
        return printed_words


def _printings(slabs: list[Slab]) -> products.Printings:
    at = pl.concat([slab.at for slab in slabs])
    return products.printings(
        slabs[0].rows.select(*products.ROW_COLUMNS, "title")[at].with_row_index("row")
    )


def _with_words(printed: products.Printings, found: pl.DataFrame) -> pl.DataFrame:
    """Add the search text. It is computed once per printing, because it is the same for all
    conditions of a printing; this halves the work.
    """
    words = search_columns(printed.keyed.with_columns(product_name="listed_name"))
    return printed.spread(found.hstack(words)).drop("row")


def _with_parts(slabs: list[Slab], part: asyncio.Task[pl.DataFrame]) -> list[Slab]:
    made = []
    start = 0
    for slab in slabs:
        made.append(replace(slab, found=part, found_from=start))
        start += slab.at.len()
    return made
