"""Uploads that queue up: sellers take turns, and the report says how long the queue is."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.platform.derived.kept_figures import Figure, mark

ORDER = {
    "order_number": "1A2B-3C",
    "order_date": "7/3/26",
    "status": "Ready to Ship",
    "total_amt": 12.5,
}


async def uploaded(seller, stream="inventory"):
    answer = await (
        seller.upload(a_csv(a_row(1))) if stream == "inventory" else seller.send("/orders", [ORDER])
    )
    assert answer.status_code == 202, answer.text
    return answer.json()["upload_id"]


async def finished(seller):
    rows = await seller.service.sql(
        seller.id, "SELECT finished_at FROM upload WHERE seller_id = :id ORDER BY id", id=seller.id
    )
    return [row["finished_at"] for row in rows]


async def turns(seller):
    query = "SELECT id FROM procrastinate_jobs WHERE status = 'todo' AND args->>'seller_id' = :id"
    return len(await seller.service.sql(seller.id, query, id=str(seller.id)))


@pytest.mark.day
@pytest.mark.parametrize("stream", ["inventory", "orders"])
@pytest.mark.parametrize("uploads", [15, pytest.param(50, marks=pytest.mark.night)])
@pytest.mark.night
async def test_a_seller_with_many_uploads_keeps_one_with_a_single_one_waiting_for_one(
    a_seller, stream, uploads
):
    many, single = await a_seller(), await a_seller()
    for _ in range(uploads):
        await uploaded(many, stream)
    assert await turns(many) == 1
    await uploaded(single, stream)
    await many.service.run_jobs()
    theirs, [own] = await finished(many), await finished(single)
    assert sum(moment < own for moment in theirs) == 1
    # Nothing is left behind, and each seller's own order stays.
    assert theirs == sorted(theirs)


async def test_an_import_does_not_wait_for_the_figures_of_another_shop(a_seller):
    shop, other = await a_seller(), await a_seller()
    await shop.import_csv(a_csv(a_row(1)))
    async with shop.service.database.tenant(shop.id) as session:
        await mark(session, shop.id, Figure.STOCK)
    await uploaded(other)
    await shop.service.run_jobs()
    ages = []
    for seller, table in ((other, "upload"), (shop, "shop_figures")):
        written = f"SELECT age(xmin) FROM {table} WHERE seller_id = :id"
        [row] = await shop.service.sql(seller.id, written, id=seller.id)
        ages.append(row["age"])
    imported, refreshed = ages
    assert imported > refreshed


async def test_a_refresh_that_runs_gives_way_to_an_upload_of_its_shop(a_seller):
    """It begins again after the import, and its interruption is no attempt that failed."""
    shop = await a_seller()
    await shop.import_csv(a_csv(a_row(1, market="1.00")))
    async with shop.service.database.tenant(shop.id) as session:
        await mark(session, shop.id, Figure.STOCK)
    await shop.service.run_jobs()
    async with shop.service.database.tenant(shop.id) as session:
        await mark(session, shop.id, Figure.STOCK)
    held = "SELECT FROM shop_figures WHERE seller_id = :id FOR UPDATE"
    async with shop.service.database.tenant(shop.id) as session:
        await session.execute(text(held), {"id": shop.id})
        running = asyncio.create_task(shop.service.run_jobs())
        while not await shop.service.sql(shop.id, STARTED, id=shop.id):
            await asyncio.sleep(0.01)
        assert (await shop.upload(a_csv(a_row(1, market="2.00")))).status_code == 202
        async with asyncio.timeout(20):
            while None in await finished(shop):
                await asyncio.sleep(0.01)
        [row] = await shop.service.sql(shop.id, MARKED, id=shop.id)
        assert row["attempts"] <= 1
    await running
    assert await shop.service.sql(shop.id, MARKED, id=shop.id) == []


MARKED = "SELECT attempts FROM work_due WHERE seller_id = :id AND stream = 'stock'"
STARTED = f"{MARKED} AND attempts = 1"


@pytest.mark.day
async def test_two_who_accept_at_once_and_a_worker_queue_one_turn(a_seller):
    seller = await a_seller()
    await asyncio.gather(
        *(uploaded(seller) for _ in range(8)), *(uploaded(seller, "orders") for _ in range(8))
    )
    clock.shift(timedelta(seconds=6))
    await seller.sweep()
    assert await turns(seller) == 2
    await seller.service.run_jobs()
    assert None not in await finished(seller)
    assert await turns(seller) == 0


@pytest.mark.day
async def test_a_turn_that_was_taken_up_meanwhile_is_followed_by_another(a_seller):
    """The waiting turn is held by who accepts: a worker finds the upload or does not begin before
    it is there.
    """
    seller = await a_seller()
    await uploaded(seller)
    for _ in range(5):
        ids, _ = await asyncio.gather(uploaded(seller), seller.service.run_jobs())
        await seller.service.run_jobs()
        assert (await seller.report(ids))["state"] == "done"


@pytest.mark.day
async def test_the_report_says_how_long_the_queue_is(a_seller):
    clock.stop()
    seller, first, second = await a_seller(), await a_seller(), await a_seller()
    await seller.service.run_jobs()
    # The marks of other tests would be in everybody's queue.
    async with seller.service.database.shared() as session:
        await session.execute(text("DELETE FROM work_due"))
    for other in (first, first, second):
        await uploaded(other)
    clock.shift(timedelta(seconds=90))
    await uploaded(seller)
    mine = await uploaded(seller)
    queue = (await seller.report(mine))["queue"]
    # Two others that wait for a turn each, and the own one before it.
    assert queue["ahead"] == 3
    assert queue["oldest_seconds"] >= 90
    assert set(queue) == {"ahead", "oldest_seconds"}
    await seller.service.run_jobs()
    assert "queue" not in await seller.report(mine)
