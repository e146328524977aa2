"""Requests that share the timer of their limits: a loop that counts its timers says how many."""

from __future__ import annotations

import asyncio

from cardsync.access.patience import patient
from cardsync.platform.settings import Settings

SOON = Settings(request_seconds=0.2, body_slow_seconds=5)
HTTP = {"type": "http"}
WHOLE = {"type": "http.request", "body": b"{}", "more_body": False}
START = {"type": "http.response.start", "status": 200, "headers": []}


class Loop(asyncio.SelectorEventLoop):
    timers = 0

    def call_at(self, *args, **options):
        self.timers += 1
        return super().call_at(*args, **options)


async def answers(scope, receive, send):
    await receive()
    await send(START)


async def hangs(scope, receive, send):
    await receive()
    await asyncio.Event().wait()


async def whole():
    return WHOLE


async def status_of(app) -> int:
    sent = []

    async def send(message) -> None:
        sent.append(message)

    await app(dict(HTTP), whole, send)
    return sent[0]["status"]


def in_loop(work) -> tuple[list[int], int]:
    """Return the statuses and the number of timers."""
    loop = Loop()
    try:
        return loop.run_until_complete(work()), loop.timers
    finally:
        loop.close()


def test_requests_share_one_timer():
    app = patient(answers, SOON)

    async def many():
        return await asyncio.gather(*(status_of(app) for _ in range(50)))

    # Each of the loops has a timer of its own.
    assert [in_loop(many) for _ in range(2)] == [([200] * 50, 1)] * 2


def test_each_request_ends_at_its_own_limit():
    app = patient(hangs, SOON)

    async def late(seconds: float) -> int:
        await asyncio.sleep(seconds)
        return await status_of(app)

    async def many():
        began = asyncio.get_running_loop().time()
        statuses = await asyncio.gather(status_of(app), late(0.3), late(0.31))
        assert asyncio.get_running_loop().time() - began >= 0.31 + SOON.request_seconds
        return statuses

    assert in_loop(many)[0] == [503] * 3
