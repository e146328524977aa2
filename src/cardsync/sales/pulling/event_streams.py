"""Streams the changes of pulls: every open page of a seller, on every process, learns of a change
within a second.

An event says only that something has changed; the page reads the rest again. A link has a limited
number of streams on a process, and so has the desk; a page beyond them asks every few seconds.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final
from weakref import WeakSet

from cardsync.platform import errors
from cardsync.sales.limits import PULL_DESK_STREAMS, PULL_LINK_STREAMS, PULL_STREAMS

# Seconds of silence after which a stream sends a sign of life, and their number after which it
# ends: the page opens a new one, so a stopping process never waits long for a page.
ALIVE_SECONDS: Final = 15.0
_SILENCES: Final = 20
_RETRY: Final = "retry: 2000\n\n"
_CHANGED: Final = "event: changed\ndata: 1\n\n"
_ENDED: Final = "event: ended\ndata: 1\n\n"
_ALIVE: Final = ": alive\n\n"


class _Page:
    """A page that listens; `link_id` is zero for one at the desk."""

    def __init__(self, link_id: int) -> None:
        self.link_id = link_id
        self.event = asyncio.Event()


class PullStreams:
    """A process has one object."""

    def __init__(self) -> None:
        # A page whose client is gone before its first event is held by nothing else.
        self._open: defaultdict[int, WeakSet[_Page]] = defaultdict(WeakSet)

    def changed(self, payload: str) -> None:
        """Wake the pages of the seller in `seller:session`, or all pages after a connection was
        lost.
        """
        seller = payload.partition(":")[0]
        sellers = [int(seller)] if seller.isdecimal() else list(self._open)
        for one in sellers:
            for page in self._open.get(one, ()):
                page.event.set()

    def events(
        self, seller_id: int, link_id: int, still_open: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Return an event at once and one with every change, until the pull or the link has ended.

        Raises RateLimited where the link, or the desk for the link zero, has as many streams as it
        may have.
        """
        pages = self._open[seller_id]
        at_the_desk = sum(page.link_id == 0 for page in pages)
        of_link = sum(page.link_id == link_id for page in pages)
        if link_id == 0:
            full = at_the_desk >= PULL_DESK_STREAMS
        else:
            full = of_link >= PULL_LINK_STREAMS or len(pages) - at_the_desk >= PULL_STREAMS
        if full:
            raise errors.RateLimited(
                "too many pages are already listening; poll instead",
                headers={"Retry-After": "5"},
            )
        page = _Page(link_id)
        pages.add(page)
        return self._events(seller_id, page, still_open)

    async def _events(
        self, seller_id: int, page: _Page, still_open: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        try:
            yield _RETRY + _CHANGED
            for _ in range(_SILENCES):
                while await _wait(page.event):
                    page.event.clear()
                    if not await still_open():
                        yield _ENDED
                        return
                    yield _CHANGED
                yield _ALIVE
        finally:
            self._open[seller_id].discard(page)
            if not self._open[seller_id]:
                del self._open[seller_id]


async def _wait(event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(ALIVE_SECONDS):
            await event.wait()
    except TimeoutError:
        return False
    return True
