"""Large order uploads, written in two halves at once: what others see of them, and writers that
outlive the worker that sent them.

Here every upload of more than one order is large.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import select, text, update

from cardsync import clock
from cardsync.database.session import Database
from cardsync.database.urls import libpq_url
from cardsync.orders import halves, ingest, rows
from cardsync.work.setbacks import LONGEST_PAUSE
from cardsync.work.uploads import Upload


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


async def waiting(service) -> list[int]:
    """The sessions that wait for a lock."""
    async with service.database.shared() as session:
        return list((await session.execute(text(WAITING))).scalars())


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def a_writer_that_outlived_its_worker(seller, upload: int):
    """Its statement runs on though its process is gone: it has the upload's row as every writer
    has it, and one half of new orders.
    """
    async with seller.service.database.tenant(seller.id) as session:
        await session.execute(
            select(Upload.id)
            .where(Upload.seller_id == seller.id, Upload.id == upload)
            .with_for_update(read=True)
        )
        for order in orders(3):
            await session.execute(
                text(
                    "INSERT INTO orders (seller_id, order_number, status, total_amt)"
                    " VALUES (:seller, :n, :status, 1.00)"
                ),
                {"seller": seller.id, "n": order["order_number"], "status": order["status"]},
            )
        yield


def test_a_cut_loses_and_doubles_nothing_and_keeps_the_order():
    body = (
        b'[{"order_number": "A"}, {"order_number": "B"}, {"order_number": "A", "status": "x"},'
        b' {"order_number": "C"}]'
    )
    read = rows.read(body, "orders")
    cut = halves.halves(read)
    assert [number for half in cut for number in half.frame["order_number"]] == read.frame[
        "order_number"
    ].to_list()
    assert sorted(number for half in cut for number in half.frame["order_number"]) == [
        "A",
        "B",
        "C",
    ]


@pytest.mark.slow
async def test_the_next_worker_waits_for_a_writer_that_outlived_its_own(a_seller):
    """Whether it commits late or not at all, no order is doubled and no upload overtakes
    another.
    """
    seller = await a_seller()
    work = seller.service.work
    first, second = await sent(seller, orders()), await sent(seller, orders(status="Shipped"))
    async with a_writer_that_outlived_its_worker(seller, first):
        assert [await ingest.work_off_one(work, seller.id) for _ in range(3)] == [False] * 3
        assert await statuses(seller) == []
    assert await statuses(seller) == ["Paid"] * 3
    assert await ingest.work_off_one(work, seller.id) is True
    assert await statuses(seller) == ["Paid"] * 6
    assert await written(seller, first) == 3, "what the last attempt wrote"
    await seller.service.run_jobs()
    assert await statuses(seller) == ["Shipped"] * 6
    assert await written(seller, second) == 6


async def test_a_writer_that_begins_after_its_upload_was_taken_over_writes_nothing(a_seller):
    """A worker that lost its place and lives on: sent before, begun when a newer upload has long
    been applied.
    """
    seller = await a_seller()
    work, now = seller.service.work, clock.now()
    await sent(seller, orders(status="Old"))
    async with work.database.tenant(seller.id) as session:
        late = (
            await session.execute(select(Upload).where(Upload.seller_id == seller.id))
        ).scalar_one()
        late.claims += 1
    read = rows.read(
        b'[{"order_number": "A-1", "status": "Old"}, {"order_number": "B-1", "status": "Old"}]',
        "orders",
    )
    async with work.database.tenant(seller.id) as session:
        await session.execute(update(Upload).where(Upload.seller_id == seller.id).values(claims=2))
    assert await halves.write(work.database, late, read, now) is None, "another has begun it anew"
    assert await statuses(seller) == []
    await sent(seller, orders(status="New"))
    await seller.service.run_jobs()
    async with work.database.tenant(seller.id) as session:
        late = (await session.execute(select(Upload).order_by(Upload.id).limit(1))).scalar_one()
    assert await halves.write(work.database, late, read, now) is None, "it is settled"
    assert await statuses(seller) == ["New"] * 6


async def test_what_waits_for_all_orders_to_hold_still_waits_for_both_halves(a_seller):
    """A threshold that is set while one half is written holds for every order of the upload."""
    seller = await a_seller()
    await seller.orders(orders(total_amt="10.00"))
    await sent(seller, orders(total_amt="30.00", status="Shipped"))
    held = text("SELECT FROM orders WHERE seller_id = :seller AND order_number = 'A-5' FOR UPDATE")
    async with seller.service.database.tenant(seller.id) as session:
        await session.execute(held, {"seller": seller.id})
        applying = asyncio.create_task(ingest.work_off_one(seller.service.work, seller.id))
        await until(lambda: _is(statuses(seller), ["Shipped"] * 3 + ["Paid"] * 3))
        setting = asyncio.create_task(seller.set(tracking_threshold="20"))
        await until(lambda: _count(waiting(seller.service), 2))
        assert not setting.done()
    assert await applying is True
    await setting
    assert {order["shipping_type"] for order in await seller.stored_orders()} == {"tracked"}


async def _is(found, wanted) -> bool:
    return (await found) == wanted


async def _count(found, wanted: int) -> bool:
    return len(await found) == wanted


async def test_a_half_that_is_lost_with_its_connection_is_written_when_the_upload_is_taken_up_again(
    owner_url, a_seller
):
    seller = await a_seller()
    await seller.orders(orders())
    upload = await sent(seller, orders(status="Shipped"))
    held = text("SELECT FROM orders WHERE seller_id = :seller AND order_number = 'A-5' FOR UPDATE")
    async with seller.service.database.tenant(seller.id) as session:
        await session.execute(held, {"seller": seller.id})
        applying = asyncio.create_task(ingest.work_off_one(seller.service.work, seller.id))
        await until(lambda: _is(statuses(seller), ["Shipped"] * 3 + ["Paid"] * 3))
        await until(lambda: _count(waiting(seller.service), 1))
        with psycopg.connect(libpq_url(owner_url, role=None)) as owner:
            owner.execute("SELECT pg_terminate_backend(%s)", await waiting(seller.service))
        assert await applying is False, "the database's fault, not the upload's"
    clock.shift(LONGEST_PAUSE)
    assert await ingest.work_off_one(seller.service.work, seller.id) is True
    assert await statuses(seller) == ["Shipped"] * 6
    assert (await seller.report(upload))["state"] == "done"
    assert await written(seller, upload) == 3


async def test_what_another_has_begun_anew_is_not_settled_by_who_wrote_it_first(a_seller):
    """Both halves are committed when the other one comes, and what it does is still ahead of it."""
    seller = await a_seller()
    await seller.orders(orders())
    upload = await sent(seller, orders(status="Shipped"))
    order = text("SELECT FROM orders WHERE seller_id = :seller AND order_number = 'A-5' FOR UPDATE")
    mine = select(Upload.id).where(Upload.seller_id == seller.id, Upload.id == upload)
    async with seller.service.database.tenant(seller.id) as other:
        async with seller.service.database.tenant(seller.id) as session:
            await session.execute(order, {"seller": seller.id})
            applying = asyncio.create_task(ingest.work_off_one(seller.service.work, seller.id))
            await until(lambda: _is(statuses(seller), ["Shipped"] * 3 + ["Paid"] * 3))
            # Shared with the writers: only who settles has to wait.
            await other.execute(mine.with_for_update(read=True))
        await until(lambda: _is(statuses(seller), ["Shipped"] * 6))
        await until(lambda: _count(waiting(seller.service), 1))
        await other.execute(
            update(Upload)
            .where(Upload.seller_id == seller.id, Upload.id == upload)
            .values(claims=Upload.claims + 1)
        )
    assert await applying is True
    query = (
        "SELECT state, finished_at, report, claims FROM upload"
        " WHERE seller_id = :seller AND id = :id"
    )
    assert await seller.service.sql(seller.id, query, seller=seller.id, id=upload) == [
        {"state": "processing", "finished_at": None, "report": {}, "claims": 2}
    ]
    assert await ingest.work_off_one(seller.service.work, seller.id) is True
    assert (await seller.report(upload))["state"] == "done"


@pytest.mark.parametrize(("failures", "claims"), [(0, 1), (1, 0)])
async def test_what_failed_once_is_written_in_one_piece(a_seller, failures, claims):
    seller = await a_seller()
    upload = await sent(seller, orders())
    async with seller.service.database.tenant(seller.id) as session:
        await session.execute(
            update(Upload).where(Upload.seller_id == seller.id).values(failures=failures)
        )
    await seller.service.run_jobs()
    assert (await seller.report(upload))["state"] == "done"
    query = "SELECT claims FROM upload WHERE seller_id = :id"
    assert await seller.service.sql(seller.id, query, id=seller.id) == [{"claims": claims}]
    assert await statuses(seller) == ["Paid"] * 6


@pytest.mark.parametrize("pool", [1, 2])
async def test_both_halves_are_written_however_few_connections_there_are(settings, a_seller, pool):
    """A writer holds no connection while it waits for another."""
    seller, others = await a_seller(), await a_seller()
    for one in (seller, others):
        await sent(one, orders())
    async with Database.open(settings.database_url, pool=pool, hot_pool=1) as database:
        work = replace(seller.service.work, database=database)
        assert (
            await asyncio.gather(*(ingest.work_off_one(work, one.id) for one in (seller, others)))
            == [True] * 2
        )
    assert await statuses(seller) == await statuses(others) == ["Paid"] * 6


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
