"""kill -9 in the middle of a generation of recommendations and of an acceptance: the next worker
begins again and ends as if nothing had happened, and a price changes once or not at all.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest
from tests.system.processes import Seller, Server, a_folder, kill, until

import soak
from builders import a_csv, a_row
from cardsync.processes import embedded

CARDS = 40
SOAK_ROUNDS = soak.count("CARDSYNC_SOAK_ROUNDS", 30, 2)
FOUND = """
    SELECT c.marketplace_id, r.kind, r.state, r.proposed_price FROM recommendation r
      JOIN card c ON c.seller_id = r.seller_id AND c.id = r.card_id
     WHERE r.seller_id = %(seller)s ORDER BY c.marketplace_id, r.id
"""
DUE = "SELECT 1 FROM work_due WHERE seller_id = %(seller)s AND stream = 'recommendations'"
WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
CHANGES = """
    SELECT p.new_price FROM price_change p
      JOIN price_run r ON r.seller_id = p.seller_id AND r.id = p.run_id
     WHERE p.seller_id = %(seller)s AND r.trigger = 'recommendation'
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_folder() as folder, Server(folder) as running:
        until(lambda: running.children("worker"), "a worker")
        yield running


def inventory(market: str) -> bytes:
    return a_csv(*(a_row(n, market=market, price="10.00", low=market) for n in range(1, CARDS + 1)))


def a_shop(server: Server) -> Seller:
    """Cards with one recommendation each: the rule asks their price, and the market stands at 14."""
    seller = server.seller()
    rule = {"name": "Own", "state": "published", "priority": 1, "price_source": "current"}
    with seller.http() as http:
        assert http.post("/api/pricing/rules", json=rule).status_code == 201
    seller.upload(inventory("14.00"))
    generated(seller, "14.0000")
    return seller


def generated(seller: Seller, price: str) -> None:
    """Wait until each card has one pending recommendation of this price, and none is due."""

    def over() -> bool:
        found = [
            (row["marketplace_id"], str(row["proposed_price"]))
            for row in seller.sql(FOUND)
            if row["state"] == "pending"
        ]
        return found == [(n, price) for n in range(1, CARDS + 1)] and not seller.sql(DUE)

    until(over, lambda: f"{CARDS} recommendations, of {seller.sql(FOUND)[:3]}", 90)


@contextmanager
def locked(server: Server, query: str, **values: Any) -> Iterator[None]:
    with (
        embedded.running(server.data_dir) as database,
        psycopg.connect(database.admin_url()) as blocker,
    ):
        assert blocker.execute(query, values).fetchall()
        yield


def test_a_generation_that_is_killed_while_it_writes_begins_again(server: Server) -> None:
    seller = a_shop(server)
    rows = "SELECT 1 FROM recommendation WHERE seller_id = %(seller)s FOR UPDATE"
    with locked(server, rows, seller=seller.id):
        seller.upload(inventory("15.00"))
        until(lambda: server.sql(WAITING), "the generation to wait")
        kill(*server.children("worker"))
        assert {str(row["proposed_price"]) for row in seller.sql(FOUND)} == {"14.0000"}
        assert seller.sql(DUE)
    generated(seller, "15.0000")
    assert len(seller.sql(FOUND)) == CARDS


def test_an_acceptance_that_is_killed_while_it_writes_leaves_nothing(server: Server) -> None:
    seller = a_shop(server)
    [one, *_] = seller.get("/api/recommendations").json()["recommendations"]
    path = f"/api/recommendations/{one['id']}/accept"
    body = {"revision": one["revision"]}
    card = "SELECT 1 FROM card WHERE seller_id = %(seller)s AND id = %(card)s FOR UPDATE"
    with (
        locked(server, card, seller=seller.id, card=one["card"]["id"]),
        seller.http() as http,
        pytest.raises(httpx.TransportError),
    ):
        http.post(path, json=body, timeout=killed_when_it_waits(server))
    assert seller.sql(CHANGES) == []
    until(lambda: answers(seller), "the web process to be back")
    with seller.http() as http:
        answer = http.post(path, json=body)
        assert (answer.status_code, answer.json().get("status")) == (200, "accepted"), answer.text
        assert http.post(path, json=body).status_code == 409
    assert [str(row["new_price"]) for row in seller.sql(CHANGES)] == ["14.0000"]


def killed_when_it_waits(server: Server) -> float:
    """A thread kills the web process when its statement waits; the timeout ends a test that hangs."""

    def work() -> None:
        until(lambda: server.sql(WAITING), "the acceptance to wait")
        kill(*server.children("web"))

    threading.Thread(target=work, daemon=True).start()
    return 60.0


def answers(seller: Seller) -> bool:
    try:
        return seller.get("/api/recommendations").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SOAK_ROUNDS))
def test_killed_at_any_moment(server: Server, number: int) -> None:
    seller = a_shop(server)
    seller.upload(inventory("15.00"))
    time.sleep(random.uniform(0, 1.5))  # the moment is what is tested
    kill(*server.children("worker"))
    generated(seller, "15.0000")
    assert len(seller.sql(FOUND)) == CARDS
