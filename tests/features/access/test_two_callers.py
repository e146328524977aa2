"""Two at once: workers draining one seller, uploads arriving together, a rerun after a stop."""

import asyncio

import pytest

from builders import a_csv, a_row
from cardsync.imports.drain import work_off_one


async def runs_of(seller):
    return await seller.service.sql(
        seller.id,
        "SELECT upload_id, state FROM price_run WHERE seller_id = :id ORDER BY id",
        id=seller.id,
    )


async def test_an_upload_that_two_workers_drain_is_imported_once(a_seller, service):
    seller = await a_seller()
    rows = [a_row(n, market="1.50") for n in range(1, 131)]
    upload_id = (await seller.upload(a_csv(*rows))).json()["upload_id"]
    did = await asyncio.gather(*(work_off_one(service.work, seller.id) for _ in range(2)))
    assert sorted(did) == [False, True]
    report = await seller.report(upload_id)
    assert (report["state"], report["applied"], report["changed"]) == ("done", 130, 130)
    assert await runs_of(seller) == [{"upload_id": upload_id, "state": "completed"}]
    assert [card["marketplace_id"] for card in await seller.cards()] == list(range(1, 131))
    changes = await service.sql(
        seller.id, "SELECT card_id FROM price_change WHERE seller_id = :id", id=seller.id
    )
    assert len({change["card_id"] for change in changes}) == len(changes) == 130
    await service.run_jobs()


@pytest.mark.day
async def test_a_reupload_that_two_workers_drain_leaves_one_observation_of_each_card(
    a_seller, service
):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, market="1.20") for n in range(1, 131))))
    await seller.upload(a_csv(*(a_row(n, market="1.50") for n in range(1, 131))))
    await asyncio.gather(*(work_off_one(service.work, seller.id) for _ in range(3)))
    kept = await service.sql(
        seller.id, "SELECT market FROM price_observation WHERE seller_id = :id", id=seller.id
    )
    assert [str(row["market"]) for row in kept] == ["1.2000"] * 130
    await service.run_jobs()


@pytest.mark.day
async def test_two_uploads_that_arrive_at_once_are_both_worked_off_in_order(a_seller):
    seller = await a_seller()
    answers = await asyncio.gather(
        *(seller.upload(a_csv(a_row(1, quantity=n), a_row(n + 10))) for n in (1, 2))
    )
    assert [answer.status_code for answer in answers] == [202, 202]
    ids = [answer.json()["upload_id"] for answer in answers]
    assert ids[0] != ids[1]
    assert (await seller.get("/api/v1/status")).json()["phase"] == "queued"
    await seller.service.run_jobs()
    assert [(await seller.report(upload_id))["state"] for upload_id in ids] == ["done", "done"]
    assert [run["upload_id"] for run in await runs_of(seller)] == sorted(ids)
    last = 1 + ids.index(max(ids))
    cards = {card["marketplace_id"]: card for card in await seller.cards()}
    assert cards[1]["quantity"] == last
    assert [n for n, card in cards.items() if not card["gone"]] == [1, last + 10]
    assert (await seller.get("/api/v1/status")).json()["phase"] == "push_queued"


async def test_two_workers_drain_two_uploads_in_order(a_seller, service):
    seller = await a_seller()
    ids = [(await seller.upload(a_csv(a_row(1, quantity=n)))).json()["upload_id"] for n in (1, 2)]

    async def drain():
        while await work_off_one(service.work, seller.id):
            pass

    await asyncio.gather(drain(), drain())
    await drain()
    assert [run["upload_id"] for run in await runs_of(seller)] == ids
    assert [card["quantity"] for card in await seller.cards()] == [2]
    await service.run_jobs()


async def test_both_forms_at_once_are_two_uploads(a_seller):
    seller = await a_seller()
    key = await seller.put_object(a_csv(a_row(1)))
    raw, named = await asyncio.gather(seller.upload(a_csv(a_row(1))), seller.send_key(key))
    assert raw.json()["upload_id"] != named.json()["upload_id"]
    await seller.service.run_jobs()
    assert len(await runs_of(seller)) == 2


async def test_sellers_that_upload_the_same_unknown_cards_at_once_share_their_products(
    a_seller, service
):
    sellers = [await a_seller() for _ in range(3)]
    data = a_csv(*(a_row(n, set="Two Callers", name=f"Unknown {n}") for n in range(1, 61)))
    await asyncio.gather(*(seller.upload(data) for seller in sellers))
    await asyncio.gather(*(work_off_one(service.work, seller.id) for seller in sellers))
    products = [[card["product_id"] for card in await seller.cards()] for seller in sellers]
    assert products[0] == products[1] == products[2]
    assert len(set(products[0])) == 60
    await service.run_jobs()
