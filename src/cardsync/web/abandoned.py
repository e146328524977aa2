"""Stops work when its caller leaves: while somebody types, the page's next request replaces the
last one, whose answer is not needed any more.
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
    """Do the work, and cancel it, in the database too, if the caller closes the connection.

    The request's body has been read, so the next message of `receive` reports that the caller left.
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
