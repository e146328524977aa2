"""Cancels work whose caller has left. While somebody types, each request of the page replaces the
previous one, whose answer is then no longer needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TypeVar

from cardsync.platform import errors

T = TypeVar("T")


async def while_there(
    receive: Callable[[], Awaitable[Mapping[str, object]]],
    work: Coroutine[object, object, T],
) -> T:
    """Do the work. Cancel it, also in the database, if the caller closes the connection.

    The caller must have read the request's body, so that the next message of `receive` can only
    report a disconnect.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise errors.BadRequest("the caller left before the answer was ready")
        return await working
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Callable[[], Awaitable[Mapping[str, object]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
