"""A worker sends notices beside its other work, and a shop's beside those of another."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from builders import a_csv, a_row
from cardsync.operations.processes.worker import run_worker
from cardsync.platform import clock
from cardsync.platform.concurrency import beside
from notices_builder import a_receiver, a_webhook, deliveries, of_service, reaching


async def test_no_import_waits_for_a_receiver_that_hangs(a_seller, service, alive):
    async with (
        a_receiver() as receiver,
        reaching(service, alive, webhook_seconds=30, notice_seconds=1, sweep_seconds=0.2) as near,
    ):
        seller = of_service(await a_seller(), near)
        owner, id, _ = await a_webhook(seller, receiver.url)
        receiver.seconds = 60
        async with asyncio.timeout(40), beside(run_worker(replace(near.work))):
            await owner.post(f"/api/webhooks/{id}/test")
            while not receiver.got:
                await asyncio.sleep(0.05)
            answer = await seller.upload(a_csv(a_row(1)))
            while (await seller.report(answer.json()["upload_id"]))["state"] != "done":
                await asyncio.sleep(0.05)
            [row] = await deliveries(owner, id)
            assert row["state"] == "waiting"
            assert len(receiver.got) == 1


@pytest.mark.parametrize("hanging", [2, pytest.param(8, marks=pytest.mark.night)])
async def test_receivers_that_hang_hold_up_no_other_shop_and_no_other_receiver(
    a_seller, service, alive, hanging
):
    """Alone runs the real worker against receivers that take a connection and never answer."""
    async with (
        AsyncExitStack() as stack,
        reaching(service, alive, webhook_seconds=15, notice_seconds=1, sweep_seconds=0.2) as near,
    ):
        greedy, other = [of_service(await a_seller(), near) for _ in range(2)]
        well, theirs = [await stack.enter_async_context(a_receiver()) for _ in range(2)]
        silent = [await stack.enter_async_context(a_receiver()) for _ in range(hanging)]
        owner, own, _ = await a_webhook(greedy, well.url)
        hooks = [(await a_webhook(greedy, one.url, browser=owner))[1] for one in silent]
        neighbor, id, _ = await a_webhook(other, theirs.url)
        for one in silent:
            one.seconds = 600
        async with asyncio.timeout(150), beside(run_worker(replace(near.work))):
            for hook in hooks * 2:
                await owner.post(f"/api/webhooks/{hook}/test")
            while not any(one.got for one in silent):
                await asyncio.sleep(0.05)
            # What is reported meanwhile brings more turns of the same shop.
            for hook in hooks * 2:
                await owner.post(f"/api/webhooks/{hook}/test")
                await asyncio.sleep(0.1)
            began = clock.monotonic()
            await neighbor.post(f"/api/webhooks/{id}/test")
            await owner.post(f"/api/webhooks/{own}/test")
            while not theirs.got:
                await asyncio.sleep(0.05)
            assert clock.monotonic() - began < 5
            while not well.got:
                await asyncio.sleep(0.05)
            # The shop's own turn ends with the wait that it has begun.
            assert clock.monotonic() - began < 20
