"""Slots for long requests: a seller's id goes in; a slot comes out. At most two long requests per
seller run at once; others wait ten seconds, then get 503.

A request that waits for its slot holds no connection of the pool.
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
    """A process has one object: one seller's simultaneous requests leave connections for all
    others.
    """

    def __init__(self) -> None:
        self._of: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, seller_id: int) -> AsyncIterator[None]:
        """Hold a slot of the seller. Raises ServiceUnavailable."""
        turn = self._of.setdefault(seller_id, asyncio.Semaphore(_AT_ONCE))
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await turn.acquire()
        except TimeoutError:
            raise errors.ServiceUnavailable(
                f"{_AT_ONCE} long requests of this account are running already;"
                " try again in a few seconds"
            ) from None
        try:
            yield
        finally:
            turn.release()
