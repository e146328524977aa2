"""Limits how many requests do one kind of work at the same time, fairly among sellers.

Only a few requests of each seller wait in the common queue; the seller's further requests wait in
the seller's own queue. So one seller never waits for more than those few requests of another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from cardsync.platform.database.seller_slots import asks


class FairTurns:
    """The turns for one kind of work; each process has one object per kind."""

    def __init__(self, most: int, of_a_seller: int = 1) -> None:
        self._all = asyncio.Semaphore(most)
        self._most = of_a_seller
        self._of: WeakValueDictionary[int | None, asyncio.Semaphore] = WeakValueDictionary()
        self.waiting = 0

    @asynccontextmanager
    async def turn(
        self, seller_id: int | None = None, *also: asyncio.Semaphore
    ) -> AsyncIterator[None]:
        """Hold one of the seller's turns and one of the common turns. `also` are semaphores that
        limit a part of the work. Without `seller_id` the seller of the current request counts.
        """
        whose = asks() if seller_id is None else seller_id
        line = self._of.setdefault(whose, asyncio.Semaphore(self._most))
        async with AsyncExitStack() as held:
            self.waiting += 1
            try:
                for turn in (line, *also, self._all):
                    await held.enter_async_context(turn)
            finally:
                self.waiting -= 1
            yield
