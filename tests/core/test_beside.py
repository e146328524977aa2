"""Work beside a block ends with it."""

import asyncio

import pytest

from cardsync.platform import concurrency
from cardsync.platform.concurrency import beside


async def test_work_that_takes_its_cancellation_for_an_error_is_canceled_again(monkeypatch):
    monkeypatch.setattr(concurrency, "LEAVE_SECONDS", 0.01)
    canceled = 0

    async def stubborn() -> None:
        nonlocal canceled
        while canceled < 3:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                canceled += 1

    async with asyncio.timeout(10), beside(stubborn()) as work:
        await asyncio.sleep(0)
    assert canceled == 3
    assert work.done()


async def test_what_work_raised_is_raised_on_leaving():
    async def failing() -> None:
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        async with beside(failing()) as work:
            await asyncio.wait([work])
