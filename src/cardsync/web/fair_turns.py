"""Limits how many requests do a kind of work at the same time, fairly among sellers.

One request of a seller waits in the common queue, the others in the seller's own queue. So another
seller waits for at most one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from cardsync.platform.database.seller_slots import asks


class FairTurns:
    """Each process has one object per kind of work."""

    def __init__(self, most: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._of: WeakValueDictionary[int | None, asyncio.Lock] = WeakValueDictionary()
        self.waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold one of the turns; a seller never holds two."""
        line = self._of.setdefault(asks(), asyncio.Lock())
        async with AsyncExitStack() as held:
            self.waiting += 1
            try:
                await held.enter_async_context(line)
                await held.enter_async_context(self._all)
            finally:
                self.waiting -= 1
            yield
