"""Work beside a block ends with it."""

import asyncio

import pytest

from cardsync.platform import concurrency
from cardsync.platform.concurrency import at_once, beside, every, every_in_thread
from waiting import eventually, until


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


class Work:
    """Work that fails the first time."""

    def __init__(self) -> None:
        self.times = 0

    def do(self) -> None:
        self.times += 1
        if self.times == 1:
            raise OSError("away")

    async def do_soon(self) -> None:
        self.do()


async def test_work_is_done_at_intervals_after_an_error_too_and_ends_with_the_block():
    work = Work()
    async with every(0.001, work.do_soon, "work_failed"):
        assert work.times == 0
        await eventually(lambda: work.times > 3)
    done = work.times
    await asyncio.sleep(0.05)
    assert work.times == done


async def test_the_first_time_may_be_before_the_block_and_the_last_one_after_it():
    work = Work()
    async with every(3600, work.do_soon, "work_failed", first=0, last=True):
        assert work.times == 1
        await asyncio.sleep(0.01)
        assert work.times == 1
    assert work.times == 2


async def test_a_failure_and_a_wake_let_the_next_time_come_sooner():
    work, wake = Work(), asyncio.Event()
    async with every(3600, work.do_soon, "work_failed", first=0, retry=0.001, wake=wake):
        await eventually(lambda: work.times == 2)
        await asyncio.sleep(0.05)
        assert work.times == 2
        wake.set()
        await eventually(lambda: work.times == 3)


async def test_work_that_is_under_way_ends_with_the_block():
    begun, ended = asyncio.Event(), False

    async def long() -> None:
        nonlocal ended
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended = True

    async with asyncio.timeout(10), every(0.001, long, "work_failed"):
        await begun.wait()
    assert ended


def test_a_thread_does_the_same():
    work = Work()
    with every_in_thread(0.001, work.do, "work_failed", last=True) as over:
        until(lambda: work.times > 3, "the work to be done again")
        assert not over.is_set()
    done = work.times
    assert over.wait(0.05)
    assert work.times == done
    with every_in_thread(3600, work.do, "work_failed", last=True):
        pass
    assert work.times == done + 1


async def test_the_first_failure_is_raised_when_all_have_ended_and_a_returned_error_is_a_result():
    ended = []

    async def ends(value: object, seconds: float = 0) -> object:
        await asyncio.sleep(seconds)
        ended.append(value)
        return value

    async def fails(reason: str) -> object:
        raise ValueError(reason)

    refusal = ValueError("a result")
    assert await at_once(ends(1, 0.01), ends(refusal)) == (1, refusal)
    ended.clear()
    with pytest.raises(ValueError, match="first"):
        await at_once(fails("first"), fails("second"), ends(2, 0.01))
    assert ended == [2]
