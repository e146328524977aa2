"""Server-sent events of pulls: a notice that a session has changed comes in; every open page of its
seller, on every process, is told within a second.

An event says only that something has changed; the page reads the rest anew. A seller has a bounded
number of streams on a process, and a page beyond them asks every few seconds instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from cardsync import errors, limits

# A silent stream says after so long that it lives, and ends after so many silences: the page opens
# the next one by itself, so that a process that stops waits for no page for long.
ALIVE_SECONDS: Final = 15.0
_SILENCES: Final = 20
_RETRY: Final = "retry: 2000\n\n"
_CHANGED: Final = "event: changed\ndata: 1\n\n"
_ENDED: Final = "event: ended\ndata: 1\n\n"
_ALIVE: Final = ": alive\n\n"


class PullStreams:
    """A process has one object."""

    def __init__(self) -> None:
        self._open: dict[int, set[asyncio.Event]] = {}

    def changed(self, payload: str) -> None:
        """Wake the pages of the seller in `seller:session`, or all pages after a connection was
        lost.
        """
        seller = payload.partition(":")[0]
        sellers = [int(seller)] if seller.isdecimal() else list(self._open)
        for one in sellers:
            for event in self._open.get(one, ()):
                event.set()

    def admit(self, seller_id: int) -> None:
        """Raises RateLimited where the seller has as many streams as it may have."""
        if len(self._open.get(seller_id, ())) >= limits.PULL_STREAMS:
            raise errors.RateLimited(
                f"more than {limits.PULL_STREAMS} pages of this account listen; ask again instead",
                headers={"Retry-After": "5"},
            )

    async def events(
        self, seller_id: int, still_open: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Yield an event at once and with every change, until the pull or the link has ended."""
        event = asyncio.Event()
        mine = self._open.setdefault(seller_id, set())
        mine.add(event)
        try:
            yield _RETRY + _CHANGED
            for _ in range(_SILENCES):
                while await _wait(event):
                    event.clear()
                    if not await still_open():
                        yield _ENDED
                        return
                    yield _CHANGED
                yield _ALIVE
        finally:
            mine.discard(event)
            if not mine and self._open.get(seller_id) is mine:
                del self._open[seller_id]


async def _wait(event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(ALIVE_SECONDS):
            await event.wait()
    except TimeoutError:
        return False
    return True
