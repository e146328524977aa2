"""Runs work beside other work: `beside` runs a coroutine while a block runs, `flushing` writes what
was noted in memory again and again, `at_once` runs two coroutines and returns both results,
`ahead` makes the items of an iterator before they are needed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, cast

import structlog

log = structlog.get_logger(__name__)

A = TypeVar("A")
B = TypeVar("B")
# Work that was canceled has this long to leave, longer than a worker lets its job end.
LEAVE_SECONDS = 25.0


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Start the work on entry; cancel it and wait for it on leaving."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        # A loop that goes on after errors may lose its cancellation: one that arrives while a
        # broken connection is left is replaced by that error.
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=LEAVE_SECONDS)
        with contextlib.suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def flushing(
    flush: Callable[[], Awaitable[None]],
    every: float,
    failure: str,
) -> AsyncIterator[None]:
    """Flush every so many seconds while the block runs, and once more on leaving. The next flush
    brings the notes of one that failed. The first failure is logged as the event `failure`, and the
    first success after it as `flush_recovered`: a full disk is two lines, however long it is full.
    """
    failed = 0

    async def once() -> None:
        nonlocal failed
        try:
            await flush()
        except Exception as e:
            if not failed:
                log.warning(failure, kind=type(e).__name__, reason=_reason(e))
            failed += 1
        else:
            if failed:
                log.info("flush_recovered", after=failure, failures=failed)
            failed = 0

    async def forever() -> None:
        while True:
            await asyncio.sleep(every)
            await once()

    try:
        async with beside(forever()):
            yield
    finally:
        await once()


def _reason(failure: Exception) -> str:
    """Return the first line of what went wrong, without the statement that a database error adds."""
    lines = str(getattr(failure, "orig", failure)).splitlines()
    return lines[0] if lines else ""


async def at_once(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Return the results of both. The second ends also where the first fails."""
    other = asyncio.create_task(second)
    try:
        done = await first
    finally:
        result = await other
    return done, result


T = TypeVar("T")

_END: Final = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items; each is made in a thread while the one before it is used. An error is raised
    at its item. The thread ends with the iteration, however that ends.
    """
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield cast("T", item)
