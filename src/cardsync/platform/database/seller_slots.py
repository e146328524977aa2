"""Divides a process's connections among sellers: a request has one of its seller's slots while it
has a connection.

A seller has few slots, so that its simultaneous requests leave connections for other sellers. Long
reads, work that prices all cards, parts of files, and visitors of the seller's public buylist have
even fewer slots for each kind, so that many requests of one kind leave a slot for the seller's
other requests. Requests without a slot wait in the seller's queue without a connection, and get 503
after ten seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from enum import IntEnum
from weakref import WeakValueDictionary

from cardsync.platform import errors
from cardsync.platform.database.connections import answer_has_begun

WAIT_SECONDS = 10
# If more of a seller's requests wait, each gets its slot so much later while other sellers'
# requests run, because all of them share the event loop.
CROWD = 8
PAUSE_SECONDS = 0.005
OTHERS_RUN = "other requests from this account are running; try again in a few seconds"
# Two queues without a seller: for requests whose seller is not known yet, such as a sign-in, and
# for health checks.
NOBODY = 0
HEALTH = -1


class Work(IntEnum):
    """The kinds of work that a request does with its connection."""

    SHORT = 0
    LONG = 1
    PRICES_ALL = 2
    FILE = 3
    VISIT = 4


class _Request:
    """A request has one slot, however many connections it uses."""

    __slots__ = ("holds", "seller_id")

    def __init__(self) -> None:
        self.seller_id = NOBODY
        self.holds = 0


_request: ContextVar[_Request | None] = ContextVar("request", default=None)


@contextmanager
def answering() -> Iterator[None]:
    """Limit the connections of the block, which answers one request."""
    token = _request.set(_Request())
    try:
        yield
    finally:
        _request.reset(token)


def asked_by(seller_id: int) -> None:
    """Set the seller of the current request, also for its reads of shared tables."""
    request = _request.get()
    if request is not None:
        request.seller_id = seller_id


def asks() -> int | None:
    """Return the seller of the current request. Return None outside a request."""
    request = _request.get()
    return None if request is None else request.seller_id


class _Line:
    """One seller's slots for each kind of work. Work of every kind but PRICES_ALL also needs a slot
    of the kind SHORT.
    """

    def __init__(self, most: tuple[int, ...]) -> None:
        self.slots = tuple(asyncio.Semaphore(number) for number in most)
        self.waiting = 0
        self.running = 0

    def of(self, work: Work) -> Iterator[asyncio.Semaphore]:
        """Return the slots that the work needs, the scarcest first."""
        if work != Work.SHORT:
            yield self.slots[work]
        # A backtest, of the kind PRICES_ALL, may last two minutes. A backtest takes no SHORT slot,
        # so that it does not delay the seller's pages.
        if work != Work.PRICES_ALL:
            yield self.slots[Work.SHORT]

    async def take(self, work: Work, held: AsyncExitStack) -> None:
        """Wait for the slots that the work needs. Raises ServiceUnavailable."""
        self.waiting += 1
        try:
            # An answer that has begun waits without a time limit, so that a file's next part cannot
            # fail; it ends if the client disconnects.
            async with asyncio.timeout(None if answer_has_begun() else WAIT_SECONDS):
                for slots in self.of(work):
                    await held.enter_async_context(slots)
        except TimeoutError:
            raise errors.ServiceUnavailable(OTHERS_RUN) from None
        finally:
            self.waiting -= 1


class Slots:
    """Each process has one object. Jobs and a process's own flushes need no slots."""

    def __init__(self, pool: int, read_pool: int) -> None:
        """Divide pools of this size, so that one seller leaves most connections to other
        sellers.
        """
        most = max(2, pool // 4)
        self.most = (most, max(1, min(most - 1, read_pool - 2)), 1, 1, 1)
        self._of: WeakValueDictionary[int, _Line] = WeakValueDictionary()
        self._running = 0

    @asynccontextmanager
    async def of(self, seller_id: int | None, work: Work = Work.SHORT) -> AsyncIterator[None]:
        """Hold a slot of this seller, or of the current request's seller. Raises
        ServiceUnavailable.
        """
        request = _request.get()
        # A request that has a slot never waits for a second slot: two such requests could wait for
        # each other.
        if request is None or request.holds:
            yield
            return
        whose = request.seller_id if seller_id is None else seller_id
        line = self._of.setdefault(whose, _Line(self.most))
        async with AsyncExitStack() as held:
            await line.take(work, held)
            if line.waiting > CROWD and self._running > line.running:
                await asyncio.sleep(PAUSE_SECONDS)
            request.holds += 1
            self._running += 1
            line.running += 1
            try:
                yield
            finally:
                line.running -= 1
                self._running -= 1
                request.holds -= 1

    def waiting(self, seller_id: int) -> int:
        """Return how many of the seller's requests wait for a slot."""
        line = self._of.get(seller_id)
        return 0 if line is None else line.waiting
