"""A full-mode run with changes leaves one task for the agent, to apply what the export holds; a
read-only one leaves none.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cardsync.platform import clock
from world import tasks

RULES = "/api/pricing/rules"


@pytest.mark.day
async def test_an_import_with_changes_makes_one_task_and_read_only_none(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="2.00")))
    assert await tasks(seller) == []
    for market in ("2.10", "2.20"):
        await seller.import_csv(a_csv(a_row(1, market=market, price="2.00")))
        assert [task["kind"] for task in await tasks(seller)] == ["apply_price_updates"]
    assert (await seller.get("/api/v1/status")).json()["phase"] == "push_queued"
    await seller.set(sync_mode="read_only")
    assert (await tasks(seller), len(await tasks(seller, "cancelled"))) == ([], 1)
    await seller.import_csv(a_csv(a_row(1, market="2.30", price="2.00")))
    await seller.post("/api/pricing/reprice")
    await seller.service.run_jobs()
    assert (await tasks(seller), (await seller.get("/api/v1/status")).json()["phase"]) == (
        [],
        "idle",
    )


async def test_a_task_is_withdrawn_when_the_marketplace_has_the_prices_already(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(1, market="2.10", price="2.00"), a_row(2, market="5.00", price="4.00"))
    )
    await seller.import_csv(
        a_csv(a_row(1, market="2.10", price="2.10"), a_row(2, market="5.00", price="4.00"))
    )
    assert len(await tasks(seller)) == 1
    await seller.import_csv(
        a_csv(a_row(1, market="2.10", price="2.10"), a_row(2, market="5.00", price="5.00"))
    )
    assert (await tasks(seller), len(await tasks(seller, "cancelled"))) == ([], 1)
    assert (await seller.get("/api/v1/status")).json()["phase"] == "idle"


async def test_a_task_in_an_agents_hand_does_not_hold_the_next_one_back_until_its_claim_has_run_out(
    a_seller,
):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.10", price="2.00")))
    take = "UPDATE agent_task SET status = 'claimed', claim_expires_at = :at WHERE seller_id = :id"
    await seller.service.sql(seller.id, take, id=seller.id, at=clock.now() + timedelta(minutes=10))
    await seller.import_csv(a_csv(a_row(1, market="2.20", price="2.00")))
    assert (len(await tasks(seller)), len(await tasks(seller, "claimed"))) == (1, 1)
    await seller.service.sql(
        seller.id,
        "DELETE FROM agent_task WHERE status = 'pending' AND seller_id = :id",
        id=seller.id,
    )
    clock.shift(timedelta(minutes=11))
    await seller.import_csv(a_csv(a_row(1, market="2.30", price="2.00")))
    assert (len(await tasks(seller)), len(await tasks(seller, "claimed"))) == (0, 1)


async def test_an_import_in_review_makes_none_until_it_is_confirmed(a_seller):
    seller = await a_seller()
    rows = [a_row(n, market="2.10", price="2.00") for n in range(1, 31)]
    await seller.import_csv(a_csv(*rows))
    await seller.applied()
    report = await seller.import_csv(a_csv(*rows[:5]))
    assert (report["state"], await tasks(seller)) == ("awaiting_review", [])
    assert (await seller.post(f"/api/v1/uploads/{report['id']}/confirm")).status_code == 200
    await seller.service.run_jobs()
    assert len(await tasks(seller)) == 1


async def test_a_seller_whose_plan_ended_meanwhile_gets_none(a_seller):
    """The account's rights at the end of the run decide."""
    seller = await a_seller()
    sent = await seller.upload(a_csv(a_row(1, market="2.10", price="2.00")))
    await seller.set(plan="free")
    await seller.service.run_jobs()
    assert (await seller.report(sent.json()["upload_id"]))["changed"] == 1
    assert await tasks(seller) == []
