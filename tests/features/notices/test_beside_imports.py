"""A worker sends notices beside its other work."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from builders import a_csv, a_row
from cardsync.concurrency import beside
from cardsync.processes.worker import run_worker
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
