"""Work that goes on beside other work: `beside` runs a coroutine while a block runs, `flushing`
writes what was noted in memory again and again, `at_once` runs two coroutines and returns what both
return.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

log = structlog.get_logger(__name__)

A = TypeVar("A")
B = TypeVar("B")


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Start the work on entry; cancel it and wait for it on leaving."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def flushing(
    flush: Callable[[], Awaitable[None]],
    every: float,
    failure: str,
) -> AsyncIterator[None]:
    """Flush every so many seconds while the block runs, and once more on leaving. A flush that
    fails is logged as the event `failure`, and the next one brings its notes.
    """

    async def forever() -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await flush()
            except Exception:
                log.exception(failure)

    try:
        async with beside(forever()):
            yield
    finally:
        await flush()


async def at_once(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Return the results of both. The second ends also where the first fails."""
    other = asyncio.create_task(second)
    try:
        done = await first
    finally:
        result = await other
    return done, result
