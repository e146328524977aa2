"""Products of new cards, found while the first of them are already written: slabs in, the same slabs out, each with its products.

What the catalog offers is read once, from the moment the file is parsed. The rows are matched a few slabs at a time, in the order of writing: so
neither the database nor the worker waits for the whole file, and no more of it is taken apart at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

import polars as pl

from cardsync.catalog import products
from cardsync.db import Database
from cardsync.inventory.slabs import Slab

T = TypeVar("T")

SLABS_AT_ONCE = 4
_FOUND = ("product_id", "match")


class NewProducts:
    """`async with` it: what is under way ends with the block."""

    def __init__(self, database: Database, parsed: pl.DataFrame, stored: pl.DataFrame) -> None:
        self._database = database
        self._tasks: set[asyncio.Task[Any]] = set()
        self._parts: list[asyncio.Task[pl.DataFrame]] = []
        # Custom listings share their ids with each other and with cards: which of them are new is not known yet.
        new = parsed["custom"] | ~parsed["listing_id"].is_in(stored["marketplace_id"].implode())
        sets = parsed.select("product_line", "set_name").filter(new)
        self._offered = self._begin(products.offered(database, sets)) if sets.height else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def found_for(self, slabs: list[Slab]) -> list[Slab]:
        """Begin to find the products of those slabs whose cards are new."""
        made: list[Slab] = []
        before: asyncio.Task[pl.DataFrame] | None = None
        new = [slab for slab in slabs if slab.is_new]
        for at in range(0, len(new), SLABS_AT_ONCE):
            some = new[at : at + SLABS_AT_ONCE]
            assert self._offered is not None
            before = self._begin(self._part(some, self._offered, before))
            self._parts.append(before)
            made += _with_parts(some, before)
        self._offered = None
        return made + [slab for slab in slabs if not slab.is_new]

    async def matches(self) -> dict[str, int]:
        """How many of the new cards were matched, provisional or ambiguous."""
        counts: Counter[str] = Counter()
        for part in self._parts:
            counts.update(dict((await part)["match"].value_counts().iter_rows()))
        return counts

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        # The catalog is large: nothing holds it when the last part is done.
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
        at = pl.concat([slab.at for slab in slabs])
        rows = slabs[0].rows.select(*products.ROW_COLUMNS, "title")[at].with_row_index("row")
        found = await products.resolve(self._database, rows, offered)
        return rows.select("row").join(found, on="row", how="left", maintain_order="left").select(_FOUND)


def _with_parts(slabs: list[Slab], part: asyncio.Task[pl.DataFrame]) -> list[Slab]:
    made, start = [], 0
    for slab in slabs:
        made.append(replace(slab, found=part, found_from=start))
        start += slab.at.len()
    return made
