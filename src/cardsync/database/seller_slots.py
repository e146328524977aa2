"""Few of a seller at a time: who may go on, and who is told to come again.

Who waits for a turn holds no connection of the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from cardsync import errors

_AT_ONCE = 2
_WAIT_SECONDS = 10


class Turns:
    """One per process: what one seller asks for at once leaves connections for all others."""

    def __init__(self) -> None:
        self._of: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, seller_id: int) -> AsyncIterator[None]:
        """Raises ServiceUnavailable."""
        turn = self._of.setdefault(seller_id, asyncio.Semaphore(_AT_ONCE))
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await turn.acquire()
        except TimeoutError:
            raise errors.ServiceUnavailable(
                "others of this account are at work: try again"
            ) from None
        try:
            yield
        finally:
            turn.release()
