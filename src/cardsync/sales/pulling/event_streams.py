"""Streams the changes of pulls: every open page of a seller, on every process, gets an event within
a second of a change.

An event has no content; the page reads the pull again. The streams of each phone link and of
members' pages on a process are limited; a page without a stream polls every few seconds.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final
from weakref import WeakSet

from cardsync.platform import errors
from cardsync.sales.limits import PULL_DESK_STREAMS, PULL_LINK_STREAMS, PULL_STREAMS

# After this many seconds without an event, a stream sends a comment to keep the connection open.
# After `_SILENCES` of these comments it ends, and the page opens a new stream. So a stopping
# process never waits long for a page.
ALIVE_SECONDS: Final = 15.0
_SILENCES: Final = 20
_RETRY: Final = "retry: 2000\n\n"
_CHANGED: Final = "event: changed\ndata: 1\n\n"
_ENDED: Final = "event: ended\ndata: 1\n\n"
_ALIVE: Final = ": alive\n\n"


class _Page:
    """An open page with a stream. `link_id` is zero for the page of a signed-in member."""

    def __init__(self, link_id: int) -> None:
        self.link_id = link_id
        self.event = asyncio.Event()


class PullStreams:
    """The open streams of this process, by seller."""

    def __init__(self) -> None:
        # The weak set drops the page of a client that disconnects before its first event, when the
        # `finally` of `_events` does not run.
        self._open: defaultdict[int, WeakSet[_Page]] = defaultdict(WeakSet)

    def changed(self, payload: str) -> None:
        """Send an event to the pages of the seller in the payload `seller:session`. A payload
        without a seller, after a lost database connection, sends it to all pages.
        """
        seller = payload.partition(":")[0]
        sellers = [int(seller)] if seller.isdecimal() else list(self._open)
        for one in sellers:
            for page in self._open.get(one, ()):
                page.event.set()

    def events(
        self, seller_id: int, link_id: int, still_open: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Yield an event at once and with every change, until `still_open` returns False, because
        the pull or the link has ended. Raises RateLimited if the link has its maximum of streams;
        for link zero, if members' pages have their maximum.
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
