"""Work that goes on beside other work: `beside` runs a coroutine while a block runs, `at_once` runs
two and returns what both return.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

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


async def at_once(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Return the results of both. The second ends also where the first fails."""
    other = asyncio.create_task(second)
    try:
        done = await first
    finally:
        result = await other
    return done, result
