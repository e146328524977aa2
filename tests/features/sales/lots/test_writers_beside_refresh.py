"""Who writes lots, orders and payments beside a worker that refreshes what follows from them: all
take their locks in one order, so nobody is refused.
"""

from __future__ import annotations

import asyncio

import psycopg

from browsers import signed_in
from builders import an_order
from cardsync.operations.processes.worker import run_worker
from cardsync.platform.concurrency import beside
from cardsync.platform.database.urls import libpq_url
from schedule import DEEP

CARD = 4_040
ROUNDS = 60 if DEEP else 20


def deadlocks(service) -> int:
    """Return how many PostgreSQL has broken in this database."""
    with psycopg.connect(libpq_url(service.settings.database_url, role=None)) as connection:
        asked = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        return int(connection.execute(asked).fetchone()[0])


def a_lot(number: int) -> dict:
    return {"marketplace_id": CARD + number % 3, "quantity": 2, "cost": "1.00",
            "bought_on": "2026-07-01"}  # fmt: skip


async def adds(seller) -> None:
    for number in range(ROUNDS):
        answer = await seller.post("/api/buying/lots", json={"lots": [a_lot(number)]})
        assert answer.status_code == 201, answer.text


async def corrects(seller) -> None:
    answer = await seller.post("/api/buying/lots", json={"lots": [a_lot(n) for n in range(3)]})
    first, second, third = answer.json()["ids"]
    for number in range(ROUNDS // 2):
        changes = {"quantity": 1 + number % 5, "cost": f"{number % 7}.50"}
        path = f"/api/buying/lots/{(first, second)[number % 2]}"
        answer = await seller.http.patch(path, json=changes)
        assert answer.status_code == 200, answer.text
    answer = await seller.http.delete(f"/api/buying/lots/{third}")
    assert answer.status_code == 200, answer.text


async def sells(seller) -> None:
    for number in range(ROUNDS // 2):
        name = f"A-{number % 4}"
        amounts = {"product_amt": 10.0, "shipping_amt": 1.0, "total_amt": 11.0}
        order = an_order(name, order_date="2026-07-03", **amounts)
        item = {"order_number": name, "sku_id": CARD + number % 3, "quantity": 1 + number % 3,
                "unit_price": 10.0, "product_line": "Magic"}  # fmt: skip
        for path, rows in (("/orders", [order]), ("/order_items", [item])):
            assert (await seller.send(path, rows)).status_code < 300


async def pays(seller) -> None:
    for number in range(ROUNDS // 2):
        csv = f"Order #,Fees\nA-{number % 4},{number % 5}.10\n"
        answer = await seller.post("/api/buying/payments", json={"csv": csv})
        assert answer.status_code == 200, answer.text


async def costs_otherwise(seller) -> None:
    browser = await signed_in(seller)
    for number in range(ROUNDS // 4):
        wanted = {"costing": ("fifo", "average")[number % 2], "supplies": f"0.{number:02}"}
        answer = await browser.send("PATCH", "/api/account", json=wanted)
        assert answer.status_code == 200, answer.text


async def test_nobody_is_refused_beside_a_worker_that_refreshes(a_seller, service):
    """Alone lets real writers and a real worker meet at the locks of lots, marks and jobs."""
    seller = await a_seller()
    before = deadlocks(service)
    async with asyncio.timeout(120), beside(run_worker(service.work)):
        await asyncio.gather(
            *(write(seller) for write in (adds, adds, corrects, sells, pays, costs_otherwise))
        )
        while await service.sql(
            seller.id,
            "SELECT stream FROM work_due WHERE seller_id = :id AND stream <> 'notices'",
            id=seller.id,
        ):
            await asyncio.sleep(0.1)
    # PostgreSQL counts at most once a second.
    await asyncio.sleep(1.1)
    assert deadlocks(service) == before
