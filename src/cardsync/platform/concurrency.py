"""Runs work concurrently: `beside` runs a coroutine while a block runs, `every` repeats work at
intervals, `every_in_thread` repeats work in a thread, `at_once` runs coroutines and returns their
results, `ahead` makes an iterator's items before they are needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar, cast, overload

import structlog

log = structlog.get_logger(__name__)

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
Work = Coroutine[object, object, A]
# Cancelled work may take this long to end; a worker gives its job less time.
LEAVE_SECONDS = 25.0


@asynccontextmanager
async def beside(work: Work[A]) -> AsyncIterator[asyncio.Task[A]]:
    """Start the work on entry; on leaving, cancel the work and wait for its end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        # The cancellation is repeated until the task ends: if it arrives while the task closes a
        # broken connection, the connection's error may replace it.
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=LEAVE_SECONDS)
        with contextlib.suppress(asyncio.CancelledError):
            await task


class _Failures:
    """The failures of repeated work. The first failure of a kind is logged as the event `name`, and
    the first success after it as `recovered`: a full disk makes two lines, however long it is full.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._kind: type[Exception] | None = None

    def add(self, failure: Exception) -> None:
        if type(failure) is not self._kind:
            # An unavailable dependency is not a fault of our code, so no stack is logged.
            is_away = isinstance(failure, OSError) or hasattr(failure, "orig")
            log.warning(
                self._name,
                kind=type(failure).__name__,
                reason=_reason(failure),
                exc_info=None if is_away else failure,
            )
        self._count += 1
        self._kind = type(failure)

    def end(self) -> None:
        if self._count:
            log.info("recovered", after=self._name, failures=self._count)
        self._count, self._kind = 0, None


@asynccontextmanager
async def every(
    seconds: float,
    work: Callable[[], Awaitable[object]],
    failure: str,
    *,
    first: float | None = None,
    last: bool = False,
    retry: float | None = None,
    wake: asyncio.Event | None = None,
) -> AsyncIterator[None]:
    """Repeat the work at this interval while the block runs. The first run begins after `first`
    seconds, or before the block if `first` is 0. With `last`, another run follows the block. `wake`
    starts the next run immediately. After a failure the next run begins after `retry` seconds.
    Errors are only logged.
    """
    failures, wake = _Failures(failure), wake or asyncio.Event()

    async def once() -> float:
        try:
            await work()
        except Exception as e:
            failures.add(e)
            return seconds if retry is None else min(retry, seconds)
        failures.end()
        return seconds

    async def forever(pause: float) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                # Jitter separates processes that were started together.
                async with asyncio.timeout(pause * random.uniform(0.9, 1.1)):  # noqa: S311
                    await wake.wait()
            wake.clear()
            pause = await once()

    pause = await once() if first == 0 else seconds if first is None else first
    try:
        async with beside(forever(pause)):
            yield
    finally:
        if last:
            await once()


@contextmanager
def every_in_thread(
    seconds: float, work: Callable[[], object], failure: str, *, last: bool = False
) -> Iterator[threading.Event]:
    """Repeat the work at this interval in a thread. The end of the block sets the yielded event,
    and then waits for the thread.
    """
    failures, over = _Failures(failure), threading.Event()

    def once() -> None:
        try:
            work()
        except Exception as e:
            failures.add(e)
        else:
            failures.end()

    def forever() -> None:
        while not over.wait(seconds):
            once()
        if last:
            once()

    thread = threading.Thread(target=forever, daemon=True, name=failure)
    thread.start()
    try:
        yield over
    finally:
        over.set()
        thread.join()


def _reason(failure: Exception) -> str:
    """Return the first line of an error, without the statement that a database error adds."""
    lines = str(getattr(failure, "orig", failure)).splitlines()
    return lines[0] if lines else ""


@overload
async def at_once(first: Work[A], second: Work[B], /) -> tuple[A, B]: ...
@overload
async def at_once(first: Work[A], second: Work[B], third: Work[C], /) -> tuple[A, B, C]: ...
@overload
async def at_once(
    first: Work[A], second: Work[B], third: Work[C], fourth: Work[D], /
) -> tuple[A, B, C, D]: ...
async def at_once(*work: Work[Any]) -> tuple[Any, ...]:
    """Run the coroutines at the same time and return their results. Wait for all of them even if
    one fails; the first failure in their order is raised. An exception may also be a result.
    """
    tasks = [asyncio.ensure_future(one) for one in work]
    await asyncio.gather(*tasks, return_exceptions=True)
    return tuple([task.result() for task in tasks])


T = TypeVar("T")

_END: Final = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items; a thread makes the next item while the caller uses the current item. An
    error is raised at the item that caused it. The thread ends with the iteration.
    """
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield cast("T", item)
