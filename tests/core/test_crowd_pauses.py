"""A seller's many waiting requests let another seller's request run between them."""

from __future__ import annotations

import asyncio

import pytest

from cardsync.platform.database import seller_slots
from cardsync.platform.database.seller_slots import CROWD, PAUSE_SECONDS, Slots

GREEDY, OTHER = 1, 2


class Loop(asyncio.SelectorEventLoop):
    """Counts the pauses."""

    pauses = 0

    def call_later(self, delay, *args, **options):
        self.pauses += delay == PAUSE_SECONDS
        return super().call_later(delay, *args, **options)


async def ask(slots: Slots, seller_id: int, until: asyncio.Event | None = None) -> None:
    with seller_slots.answering():
        seller_slots.asked_by(seller_id)
        async with slots.of(seller_id):
            await (until.wait() if until else asyncio.sleep(0))


def pauses_of(requests: int, *running: int) -> int:
    """Return how often so many requests of a seller paused while those sellers' requests ran."""

    async def crowd() -> None:
        slots, over = Slots(8, 4), asyncio.Event()
        others = [asyncio.create_task(ask(slots, one, over)) for one in running]
        await asyncio.sleep(0)
        await asyncio.gather(*(ask(slots, GREEDY) for _ in range(requests)))
        over.set()
        await asyncio.gather(*others)

    loop = Loop()
    try:
        loop.run_until_complete(crowd())
        return loop.pauses
    finally:
        loop.close()


def test_only_a_crowd_pauses_and_only_while_another_seller_waits():
    [most, *_] = Slots(8, 4).most
    # The first take their slots at once; the others do while those after them wait.
    small = most + CROWD + 1
    assert pauses_of(60, OTHER) == 60 - small
    assert pauses_of(small, OTHER) == 0
    assert pauses_of(60) == 0
    # A request of its own leaves fewer slots, and is no other seller's.
    assert pauses_of(60, GREEDY) == 0


@pytest.mark.parametrize("requests", [1, 60])
def test_a_pause_keeps_a_slot_and_gives_it_back(requests):
    async def crowd() -> None:
        slots, over = Slots(8, 4), asyncio.Event()
        other = asyncio.create_task(ask(slots, OTHER, over))
        await asyncio.sleep(0)
        left = [asyncio.create_task(ask(slots, GREEDY)) for _ in range(requests)]
        await asyncio.sleep(PAUSE_SECONDS / 2)
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        over.set()
        await other
        async with asyncio.timeout(5):
            await asyncio.gather(*(ask(slots, GREEDY) for _ in range(60)))

    asyncio.run(crowd())
