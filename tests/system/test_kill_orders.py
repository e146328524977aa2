"""kill -9 between the 202 of order-data uploads and their application, and in the middle of it:
nothing is lost, nothing doubled.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.system.processes import Seller, Server, a_folder, assert_same, kill, until

import soak
from cardsync.processes import embedded

ORDERS = 1500
EVERYDAY_ROUNDS = 1
SOAK_ROUNDS = soak.count("CARDSYNC_SOAK_ROUNDS", 100, 10)
SNAPSHOT = {
    "orders": """
        SELECT order_number, buyer_name, order_date, status, total_amt::text, refund_amt::text,
            shipping_method, shipping_type, items_total,
               items_quantity, product_lines FROM orders WHERE seller_id = %(seller)s
               ORDER BY order_number
    """,
    "items": """
        SELECT o.order_number, i.sku_id, i.product_name, i.quantity, i.unit_price::text
        FROM order_item i
          JOIN orders o ON o.seller_id = i.seller_id AND o.id = i.order_id
          WHERE i.seller_id = %(seller)s
         ORDER BY o.order_number, i.sku_id, i.product_name
    """,
    "uploads": """
        SELECT kind, state, error_code, report->>'applied' AS applied, report->>'skipped' AS skipped
          FROM upload WHERE seller_id = %(seller)s ORDER BY id
    """,
}


def history() -> list[tuple[str, list[dict[str, Any]]]]:
    """Uploads that depend on each other: what an order says last, lines that replace each other,
    refunds that create.
    """
    numbers = [f"A-{number:05}" for number in range(ORDERS)]
    first = [
        {
            "order_number": n,
            "buyer_name": "Some Buyer",
            "order_date": "07/03/2026",
            "status": "Paid",
            "total_amt": "12.50",
        }
        for n in numbers
    ]
    items = [
        {"order_number": n, "sku_id": sku, "quantity": 1, "product_line": "Magic"}
        for n in numbers
        for sku in (1, 2)
    ]
    loose = [
        {"order_number": n, "product_name": f"loose {at}", "quantity": 2}
        for n in numbers[::3]
        for at in range(2)
    ]
    return [
        ("order_items", items[:100]),
        ("orders", first),
        ("order_items", items + loose),
        ("orders/shipping",
         [{"order_number": n, "shipping_method": "Expedited"} for n in numbers[::2]]),
        ("order_refunds",
         [{"order_number": n, "total_amt": "3.00"} for n in [*numbers[::5], "B-1", "B-2"]]),
        ("order_items", loose),
        ("orders", [{"order_number": n, "status": "Shipped"} for n in numbers[::4]]),
    ]  # fmt: skip


@dataclass(frozen=True)
class Ground:
    server: Server
    uploads: list[tuple[str, bytes]]
    undisturbed: dict[str, Any]
    seconds: float


def send(seller: Seller, path: str, body: bytes) -> int:
    with seller.http() as http:
        answer = http.post(
            f"/api/v1/{path}", content=body, headers={"Content-Type": "application/json"}
        )
    assert answer.status_code == 202, answer.text
    return int(answer.json()["upload_id"])


def snapshot(seller: Seller) -> dict[str, Any]:
    return {name: seller.sql(query) for name, query in SNAPSHOT.items()}


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    uploads = [(path, json.dumps(rows).encode()) for path, rows in history()]
    with a_folder() as folder, Server(folder, ORDERS_HALVED_OVER="500") as server:
        seller = server.seller()
        ids = [send(seller, path, body) for path, body in uploads]
        began = time.monotonic()
        assert {seller.finished(upload)["state"] for upload in ids} == {"done"}
        taken = snapshot(seller)
        assert len(taken["orders"]) == ORDERS + 2
        assert len(taken["items"]) == 2 * ORDERS + 2 * ORDERS // 3
        yield Ground(server, uploads, taken, time.monotonic() - began)


def kill_worker(server: Server) -> None:
    kill(*server.children("worker"))


WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


@contextmanager
def a_held_order(seller: Seller, number: str) -> Iterator[None]:
    """Make every writer of this order wait until the block ends."""
    with (
        embedded.running(seller.server.data_dir) as database,
        psycopg.connect(database.admin_url()) as blocker,
    ):
        blocker.execute(
            "SELECT FROM orders WHERE seller_id = %s AND order_number = %s FOR UPDATE",
            [seller.id, number],
        )
        yield


def one_round(ground: Ground, moments: list[float]) -> None:
    """Send everything, then kill the worker so many seconds after the last 202, each time anew."""
    server = ground.server
    until(lambda: server.children("worker"), "a worker")
    seller = server.seller()
    ids = [send(seller, path, body) for path, body in ground.uploads]
    for moment in moments:
        time.sleep(moment)  # the moment is what is tested
        kill_worker(server)
    assert {seller.finished(upload)["state"] for upload in ids} == {"done"}, server.said()[-2000:]
    assert_same(snapshot(seller), ground.undisturbed)


def test_killed_before_anything_is_applied(ground: Ground) -> None:
    """Each 202 is answered while there is no worker at all."""
    server, seller = ground.server, ground.server.seller()
    ids = []
    for path, body in ground.uploads:
        kill_worker(server)
        ids.append(send(seller, path, body))
    assert {seller.finished(upload)["state"] for upload in ids} == {"done"}
    assert_same(snapshot(seller), ground.undisturbed)


def test_killed_while_rows_are_being_written(ground: Ground) -> None:
    """Held at a row that another holds, the transaction dies with its worker and leaves nothing
    of itself.
    """
    server, seller = ground.server, ground.server.seller()
    first, *others = ground.uploads
    ids = [send(seller, *first), send(seller, *others[0])]
    seller.finished(ids[-1])
    with a_held_order(seller, f"A-{ORDERS - 2:05}"):
        ids += [send(seller, *upload) for upload in others[1:]]
        until(lambda: server.sql(WAITING), "the worker to meet the locked row")
        assert not seller.sql("SELECT 1 FROM order_item WHERE seller_id = %(seller)s")
        kill_worker(server)
    assert {seller.finished(upload)["state"] for upload in ids} == {"done"}
    assert_same(snapshot(seller), ground.undisturbed)


def test_killed_between_the_commits_of_two_halves(ground: Ground) -> None:
    """The second half waits for a row and outlives its worker: nobody goes on before it has
    ended, and then the upload is finished.
    """
    server, seller = ground.server, ground.server.seller()
    ids = [send(seller, *upload) for upload in ground.uploads[:3]]
    seller.finished(ids[-1])
    sent = (
        "SELECT count(*) AS n FROM orders"
        " WHERE seller_id = %(seller)s AND shipping_method = 'Expedited'"
    )
    with a_held_order(seller, f"A-{ORDERS - 2:05}"):
        ids += [send(seller, *upload) for upload in ground.uploads[3:]]
        until(
            lambda: seller.sql(sent) == [{"n": ORDERS // 4}] and server.sql(WAITING),
            "one half of the shipping rows",
        )
        killed = server.children("worker")
        kill(*killed)
        until(
            lambda: [child for child in server.children("worker") if child not in killed],
            "another worker",
        )
        assert seller.sql(sent) == [{"n": ORDERS // 4}]
        assert server.sql(WAITING), "the second half's statement lives on"
        assert not seller.sql(
            "SELECT 1 FROM orders WHERE seller_id = %(seller)s AND refund_amt IS NOT NULL"
        )
    assert {seller.finished(upload)["state"] for upload in ids} == {"done"}
    assert_same(snapshot(seller), ground.undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(EVERYDAY_ROUNDS))
def test_killed_at_a_random_moment(ground: Ground, number: int) -> None:
    one_round(ground, [(number + random.random()) / EVERYDAY_ROUNDS * ground.seconds])


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SOAK_ROUNDS))
def test_killed_at_any_moments(ground: Ground, number: int) -> None:
    one_round(ground, [random.uniform(0, ground.seconds) for _ in range(random.randint(1, 2))])
