"""Limits how many requests do a kind of work at the same time, fairly among sellers.

A few requests of a seller wait in the common queue, the others in the seller's own queue. So
another seller waits for at most those few.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from cardsync.platform.database.seller_slots import asks


class FairTurns:
    """Each process has one object per kind of work."""

    def __init__(self, most: int, of_a_seller: int = 1) -> None:
        self._all = asyncio.Semaphore(most)
        self._most = of_a_seller
        self._of: WeakValueDictionary[int | None, asyncio.Semaphore] = WeakValueDictionary()
        self.waiting = 0

    @asynccontextmanager
    async def turn(
        self, seller_id: int | None = None, *also: asyncio.Semaphore
    ) -> AsyncIterator[None]:
        """Hold one of the turns of the seller, or of the one who asks, and `also` turns at a part
        of the work.
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
