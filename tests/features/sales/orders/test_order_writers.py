"""Writers of order uploads beside each other: what others see of them, and writers that outlive
the worker that sent them.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager

import psycopg
import pytest
from sqlalchemy import select, text

from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.work.models import Upload
from cardsync.platform.work.setbacks import LONGEST_PAUSE
from cardsync.sales.orders import ingest
from waiting import eventually


def orders(count: int = 6, **fields):
    return [
        {"order_number": f"A-{number}", "status": "Paid", "total_amt": "1.00"} | fields
        for number in range(count)
    ]


async def statuses(seller) -> list[str]:
    return [order["status"] for order in await seller.stored_orders()]


async def sent(seller, rows, path="/orders") -> int:
    answer = await seller.send(path, rows)
    assert answer.status_code == 202, answer.text
    return int(answer.json()["upload_id"])


async def written(seller, upload: int) -> int:
    query = (
        "SELECT (report->>'written')::int AS n FROM upload WHERE seller_id = :seller AND id = :id"
    )
    return int((await seller.service.sql(seller.id, query, seller=seller.id, id=upload))[0]["n"])


WAITING = """
    SELECT DISTINCT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE a.datname = current_database() AND NOT l.granted
"""
if "CARDSYNC_TEST_CITUS_URL" in os.environ:
    # The number of a session of all nodes ends with its process at the coordinator.
    WAITING = "SELECT DISTINCT CAST(waiting_gpid % 10000000000 AS integer) FROM citus_lock_waits"


async def waiting(service) -> list[int]:
    """The sessions that wait for a lock."""
    async with service.database.shared() as session:
        return list((await session.execute(text(WAITING))).scalars())


@asynccontextmanager
async def a_writer_that_outlived_its_worker(seller, upload: int):
    """Its statement runs on though its process is gone, and nobody is there to commit."""
    mine = select(Upload.id).where(Upload.seller_id == seller.id, Upload.id == upload)
    async with seller.service.database.tenant(seller.id) as session:
        await session.execute(mine.with_for_update())
        for order in orders(3):
            await session.execute(
                text(
                    "INSERT INTO orders (seller_id, order_number, status, total_amt)"
                    " VALUES (:seller, :n, :status, 1.00)"
                ),
                {"seller": seller.id, "n": order["order_number"], "status": order["status"]},
            )
        yield
        await session.rollback()


@pytest.mark.day
async def test_the_next_worker_waits_for_a_writer_that_outlived_its_own(a_seller):
    seller = await a_seller()
    work = seller.service.work
    first, second = await sent(seller, orders()), await sent(seller, orders(status="Shipped"))
    async with a_writer_that_outlived_its_worker(seller, first):
        assert [await ingest.work_off_one(work, seller.id) for _ in range(3)] == [False] * 3
        assert await statuses(seller) == []
    assert await ingest.work_off_one(work, seller.id) is True
    assert await statuses(seller) == ["Paid"] * 6
    assert await written(seller, first) == 6
    await seller.service.run_jobs()
    assert await statuses(seller) == ["Shipped"] * 6
    assert await written(seller, second) == 6


async def test_a_glance_at_an_upload_does_not_stop_its_writer(a_seller):
    """Many who look for work at once lock its row one after the other, each for a moment."""
    seller = await a_seller()
    work = seller.service.work
    upload_id = await sent(seller, orders())
    mine = select(Upload).where(Upload.seller_id == seller.id, Upload.id == upload_id)
    async with work.database.tenant(seller.id) as glance:
        upload = (await glance.execute(mine.with_for_update())).scalar_one()
        writing = asyncio.create_task(ingest.UPLOADS.work(work, upload, upload))
        done, _ = await asyncio.wait([writing], timeout=0.5)
        assert not done
    await writing
    assert await statuses(seller) == ["Paid"] * 6


@asynccontextmanager
async def an_upload_in_the_middle(seller, upload_rows):
    """Yield the task that applies the rows: it has the upload's row, and waits for an order's."""
    await seller.orders(orders(total_amt="10.00"))
    await sent(seller, upload_rows)
    held = text("SELECT FROM orders WHERE seller_id = :seller AND order_number = 'A-5' FOR UPDATE")
    async with seller.service.database.tenant(seller.id) as session:
        await session.execute(held, {"seller": seller.id})
        applying = asyncio.create_task(ingest.work_off_one(seller.service.work, seller.id))
        await eventually(lambda: _count(waiting(seller.service), 1))
        yield applying


async def test_what_waits_for_all_orders_to_hold_still_waits_for_their_writer(a_seller):
    """A threshold that is set while an upload is written holds for every order of it."""
    seller = await a_seller()
    rows = orders(total_amt="30.00", status="Shipped")
    async with an_upload_in_the_middle(seller, rows) as applying:
        setting = asyncio.create_task(seller.set(tracking_threshold="20"))
        await eventually(lambda: _count(waiting(seller.service), 2))
        assert not setting.done()
    assert await applying is True
    await setting
    assert {order["shipping_type"] for order in await seller.stored_orders()} == {"tracked"}


async def _count(found, wanted: int) -> bool:
    return len(await found) == wanted


async def test_an_upload_whose_connection_is_lost_is_applied_when_it_is_taken_up_again(
    owner_url, a_seller
):
    seller = await a_seller()
    async with an_upload_in_the_middle(seller, orders(status="Shipped")) as applying:
        with psycopg.connect(libpq_url(owner_url, role=None)) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(CAST(%s AS integer))", await waiting(seller.service)
            )
        assert await applying is False, "the database's fault, not the upload's"
        assert await statuses(seller) == ["Paid"] * 6
    clock.shift(LONGEST_PAUSE)
    assert await ingest.work_off_one(seller.service.work, seller.id) is True
    assert await statuses(seller) == ["Shipped"] * 6


async def test_many_workers_at_once_end_in_what_one_leaves(a_seller):
    """Orders that come, change, are refunded and sent, each upload at the mercy of whoever is at
    it first; counts included.
    """
    one, many = await a_seller(), await a_seller()
    steps = [
        ("/orders", orders(40)),
        (
            "/order_refunds",
            [{"order_number": f"A-{n}", "total_amt": "0.50"} for n in range(0, 60, 3)],
        ),
        ("/orders", orders(60, status="Shipped", order_date="07/03/2026")),
        (
            "/orders/shipping",
            [{"order_number": f"A-{n}", "shipping_method": "Expedited"} for n in range(80)],
        ),
    ]
    for seller in (one, many):
        for path, sent_rows in steps:
            await sent(seller, sent_rows, path)
    await one.service.run_jobs()
    outcomes = [True]
    while any(outcomes):
        outcomes = await asyncio.gather(
            *(ingest.work_off_one(many.service.work, many.id) for _ in range(3))
        )
    assert await _left(many) == await _left(one)


async def _left(seller) -> list[dict[str, object]]:
    looked_at = [
        (
            "SELECT order_number, status, order_date, total_amt, refund_amt, shipping_method,"
            " shipping_type FROM orders WHERE seller_id = :s ORDER BY 1"
        ),
        (
            "SELECT period, block, status_group, shipping_type, refunded, orders, days"
            " FROM order_tally WHERE seller_id = :s AND orders > 0 ORDER BY 1, 2, 3, 4, 5"
        ),
        (
            "SELECT kind, state, report->>'skipped' AS skipped FROM upload WHERE seller_id = :s"
            " ORDER BY id"
        ),
    ]
    return [
        row
        for query in looked_at
        for row in await seller.service.sql(seller.id, query, s=seller.id)
    ]
