"""Runs heavy reads of large shops in separate processes, so that the memory of a read is bounded.

A web process may use its share of the host's heavy processes, at least two, and one more for
writes. A seller uses at most two. Backtests and tables of the archive leave one process to other
reads. A process handles one request at a time and then stays idle for a while. While the owner of a
large shop opens pages, one process stays ready, because starting a process takes longer than most
reads. If a process crashes or runs out of memory, nothing else is affected. Both sides are this
program, so messages are pickled.

The web process itself does the reads of small shops.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from structlog.contextvars import get_contextvars

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.hot_reads import PolledQuery, only_looks
from cardsync.platform.database.seller_slots import OTHERS_RUN, WAIT_SECONDS, Work
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.web.fair_turns import FairTurns
from cardsync.web.heavy_child import Answered, Child

P = ParamSpec("P")
T = TypeVar("T")
# The prefix of the name of a process's temporary folder.
FOLDER: Final = "cardsync-heavy-"
# The environment variable that names the folder for the metrics of several processes.
_METRICS: Final = "PROMETHEUS_MULTIPROC_DIR"
PROGRAM: Final = (sys.executable, "-m", "cardsync", "heavy")
_IDLE_SECONDS: Final = 60.0
# The first value is for how many seconds a process stays ready after an owner of a large shop
# opened a page. The second is the least time between two checks of a shop's size.
_EXPECTED_SECONDS: Final = 900.0
_LOOK_SECONDS: Final = 15.0
# For how long a large shop is not checked again: a check reads thousands of entries of an index,
# and a file has hundreds of reads. A small shop is checked each time, because it may grow at once.
_LARGE_SECONDS: Final = 60.0
# The maximum number of sellers in `_looked` and `_large`, which are emptied when they have more.
_SELLERS: Final = 5_000
_OF_A_SELLER: Final = 2
_IS_LARGE: Final = PolledQuery(
    "shop_is_large",
    """
    SELECT EXISTS (SELECT FROM card WHERE seller_id = $1 OFFSET $2)
           OR EXISTS (SELECT FROM orders WHERE seller_id = $1 OFFSET $2)
    """,
)
TOO_MUCH: Final = (
    "this takes more memory than one shop may use; ask for less (a shorter search, fewer days),"
    " or try again"
)
# The key in `session.info` under which a request that writes finds the HeavyWork.
HEAVY: Final = "heavy_work"
Read = Callable[Concatenate[Database, Caller, Settings, datetime, P], Awaitable[T]]


class HeavyRequest(NamedTuple):
    """A request to a process: the module and name of a function, its arguments, the log's context,
    and whether the HTTP request is a HEAD.
    """

    module: str
    name: str
    values: tuple[Any, ...]
    options: dict[str, Any]
    logged: dict[str, object]
    only_looks: bool


class HeavyWork:
    """The heavy processes of a web process, which has one object of this class."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        most = max(2, settings.heavy_processes // settings.web_workers)
        self._turns = FairTurns(most, _OF_A_SELLER)
        # A backtest may take two minutes. One process stays free for other reads, such as an
        # agent's price file.
        self._longest = asyncio.Semaphore(most - 1)
        # Writes have one more process.
        self._writes = asyncio.Semaphore(1)
        self._places = FairTurns(_SELLERS)
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        # The time when each seller's shop may be checked again, and the time until which a process
        # is kept ready.
        self._looked: dict[int, float] = {}
        self._expected_until = 0.0
        # The time until which a seller's shop counts as large.
        self._large: dict[int, float] = {}
        self._looking: set[asyncio.Task[None]] = set()
        # Processes that are starting and for which no request waits.
        self._coming: list[asyncio.Task[Child]] = []

    async def read(
        self,
        work: Read[P, T],
        caller: Caller,
        kind: Work,
        now: datetime,
        *values: P.args,
        **options: P.kwargs,
    ) -> T:
        """Run the function for the seller, limited with other work of its kind: a search while
        typing (LONG) does not wait for a backtest (PRICES_ALL). Raises whatever the function
        raises.
        """
        if await self._has_large(caller.seller_id):
            return await self.read_apart(work, caller, kind, now, *values, **options)
        return await self._read_here(work, caller, kind, now, *values, **options)

    async def _read_here(
        self,
        work: Read[P, T],
        caller: Caller,
        kind: Work,
        now: datetime,
        *values: P.args,
        **options: P.kwargs,
    ) -> T:
        async with self._database.slots.of(caller.seller_id, kind):
            return await work(self._database, caller, self._settings, now, *values, **options)

    async def read_at_once(
        self,
        work: Read[P, T],
        caller: Caller,
        kind: Work,
        now: datetime,
        *values: P.args,
        **options: P.kwargs,
    ) -> T | None:
        """Run the function like `read`, or return None if the shop is large and no process is free.
        Then a process is started for the caller's next attempt.
        """
        if not await self._has_large(caller.seller_id):
            return await self._read_here(work, caller, kind, now, *values, **options)
        if not self._is_free():
            self._expect(caller.seller_id)
            return None
        return await self.read_apart(work, caller, kind, now, *values, **options)

    def expect(self, seller_id: int) -> None:
        """Keep a process ready if the shop is large, because its owner opens pages."""
        now = asyncio.get_running_loop().time()
        if self._looked.get(seller_id, 0.0) > now:
            return
        if len(self._looked) >= _SELLERS:
            self._looked.clear()
        self._looked[seller_id] = now + _LOOK_SECONDS
        self._expect(seller_id)

    def _expect(self, seller_id: int) -> None:
        looking = asyncio.create_task(self._made_ready(seller_id))
        self._looking.add(looking)
        looking.add_done_callback(self._looking.discard)

    async def _made_ready(self, seller_id: int) -> None:
        # The first read that needs the process reports the error.
        with contextlib.suppress(errors.Problem, SQLAlchemyError, OSError):
            if not await self._has_large(seller_id):
                return
            self._expected_until = asyncio.get_running_loop().time() + _EXPECTED_SECONDS
            is_busy = len(self._all) > len(self._idle)
            if not (is_busy or self._is_free() or self._coming):
                self._come(asyncio.create_task(self._started()))

    async def read_apart(
        self,
        work: Read[P, T],
        caller: Caller,
        kind: Work | None,
        now: datetime,
        *values: P.args,
        **options: P.kwargs,
    ) -> T:
        """Run the function in a process, whatever the size of the shop. `kind` is None for a
        request that writes. Raises ServiceUnavailable if no process can be used.
        """
        asked = HeavyRequest(
            work.__module__,
            work.__qualname__,
            (caller, now, *values),
            options,
            get_contextvars(),
            only_looks(),
        )
        async with self._turn(caller.seller_id, kind):
            answered = await self._answered(pickle.dumps(asked))
        if answered.failure is not None:
            raise answered.failure
        found: T = answered.found
        return found

    @asynccontextmanager
    async def _turn(self, seller_id: int, kind: Work | None) -> AsyncIterator[None]:
        """Hold a turn of the seller. Requests in one seller's queue do not block other sellers. A
        write holds the row lock of the seller's `sync_state`, so it waits only for other writes,
        and only briefly.
        """
        if kind is None:
            async with _soon(self._writes):
                yield
            return
        also = [self._longest] if kind == Work.PRICES_ALL else []
        async with (
            self._database.slots.of(seller_id, kind),
            self._turns.turn(seller_id, *also),
        ):
            yield

    def place(self, seller_id: int) -> AbstractAsyncContextManager[None]:
        """Hold the seller's one place for a file on the disk, which is complete before its client
        reads it. Raises ServiceUnavailable.
        """
        return _soon(self._places.turn(seller_id))

    async def _has_large(self, seller_id: int) -> bool:
        now = asyncio.get_running_loop().time()
        if self._large.get(seller_id, 0.0) > now:
            return True
        if is_large := await self.is_large(seller_id):
            if len(self._large) >= _SELLERS:
                self._large.clear()
            self._large[seller_id] = now + _LARGE_SECONDS
        return is_large

    async def is_large(self, seller_id: int) -> bool:
        few = self._settings.heavy_cards
        return (await self._database.polled.first_row(seller_id, _IS_LARGE, few)) == (True,)

    async def _answered(self, asked: bytes) -> Answered:
        process = await self._living()
        try:
            answer = await process.answer(asked)
        except (asyncio.IncompleteReadError, ConnectionError):
            await self._end(process)
            raise errors.ServiceUnavailable(TOO_MUCH) from None
        except asyncio.CancelledError:
            await asyncio.shield(self._stop(process))
            raise
        except BaseException:
            await self._end(process)
            raise
        self._rest(process)
        return answer

    def _is_free(self) -> bool:
        return any(process.lives() for process in self._idle)

    async def _living(self) -> Child:
        """Return an idle process that still runs, or a new one."""
        while self._idle:
            process = self._idle.pop()
            process.wakes()
            if process.lives():
                return process
            await self._end(process)
        started = self._coming.pop() if self._coming else asyncio.create_task(self._started())
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            # The started process is kept for the next request, because somebody is typing.
            self._come(started)
            raise

    def _come(self, started: asyncio.Task[Child]) -> None:
        """Make a starting process idle when it is ready, unless a request has taken it by then."""

        def come(_: object) -> None:
            if started not in self._coming:
                return
            self._coming.remove(started)
            if not started.cancelled() and started.exception() is None:
                self._rest(started.result())

        self._coming.append(started)
        started.add_done_callback(come)

    async def _started(self) -> Child:
        """Start a process and return it when it is ready. Raises ServiceUnavailable if it fails."""
        # The folder is removed when the process ends, whatever the reason.
        folder = TemporaryDirectory(prefix=FOLDER)
        try:
            started = await asyncio.create_subprocess_exec(
                *PROGRAM,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=_environment(folder.name),
            )
        except BaseException:
            folder.cleanup()
            raise
        process = Child(started, folder)
        self._all.add(process)
        try:
            await process.tell(pickle.dumps(self._settings))
            await process.ready()
        except (asyncio.IncompleteReadError, ConnectionError):
            await self._end(process)
            raise errors.ServiceUnavailable(TOO_MUCH) from None
        except BaseException:
            await self._end(process)
            raise
        return process

    async def _stop(self, process: Child) -> None:
        """Stop the process's work. If that fails, end the process."""
        try:
            is_free = await process.stopped()
        except BaseException:
            await self._end(process)
            raise
        if is_free:
            self._rest(process)
        else:
            await self._end(process)

    def _rest(self, process: Child) -> None:
        def ended() -> bool:
            is_expected = asyncio.get_running_loop().time() < self._expected_until
            if is_expected and self._idle == [process]:
                return False
            self._idle.remove(process)
            self._all.discard(process)
            return True

        self._idle.append(process)
        process.rests(_IDLE_SECONDS, ended)

    async def _end(self, process: Child) -> None:
        self._all.discard(process)
        await process.end()

    async def end(self) -> None:
        going: list[asyncio.Task[object]] = [*self._looking, *self._coming]
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for process in list(self._all):
            await self._end(process)


@asynccontextmanager
async def _soon(turn: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
    """Wait a limited time for a turn, and hold it. Raises ServiceUnavailable if the
    time is over.
    """
    async with AsyncExitStack() as held:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await held.enter_async_context(turn)
        except TimeoutError:
            raise errors.ServiceUnavailable(OTHERS_RUN) from None
        yield


async def heavy_for(session: AsyncSession, seller_id: int) -> HeavyWork | None:
    """Return the HeavyWork if the shop is large, for a read outside the request's transaction. Such
    a read sees only committed rows. A worker process has a memory limit of its own, so there this
    returns None.
    """
    heavy: HeavyWork | None = session.info.get(HEAVY)
    if heavy is None or not await heavy.is_large(seller_id):
        return None
    return heavy


def _environment(folder: str) -> dict[str, str]:
    """Return the environment of a process. Its temporary files are in `folder`. It writes no
    metrics, because each process would leave files of metrics behind.
    """
    kept = {name: value for name, value in os.environ.items() if name != _METRICS}
    return kept | {"TMPDIR": folder}


@asynccontextmanager
async def heavy_work(database: Database, settings: Settings) -> AsyncIterator[HeavyWork]:
    made = HeavyWork(database, settings)
    try:
        yield made
    finally:
        await made.end()
