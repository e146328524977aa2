"""A database that hangs, as on a frozen disk: every request has an end, and all goes on with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from tests.system.inventories import inventory
from tests.system.processes import Seller, Server, a_folder, until

pytestmark = pytest.mark.day

POLLED_SECONDS = 1.5
REQUEST_SECONDS = 4.0
# Seconds that a busy machine may add.
SLACK = 3.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with (
        a_folder() as folder,
        Server(
            folder, POLLED_SECONDS=str(POLLED_SECONDS), REQUEST_SECONDS=str(REQUEST_SECONDS)
        ) as started,
    ):
        yield started


@contextmanager
def hung(server: Server) -> Iterator[None]:
    processes = server.postgres()
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


def asked(seller: Seller, method: str, path: str) -> tuple[int, float, httpx.Response]:
    """Status, seconds and answer."""
    began = time.monotonic()
    with seller.http() as http:
        answer = http.request(method, path)
    return answer.status_code, time.monotonic() - began, answer


def assert_unavailable(answered: tuple[int, float, httpx.Response], seconds: float) -> None:
    status, took, answer = answered
    assert (status, answer.json()["code"]) == (503, "service_unavailable"), answer.text
    assert int(answer.headers["Retry-After"]) > 0
    assert took < seconds + SLACK


POLLS = [("POST", "/api/v1/heartbeat"), ("GET", "/api/v1/sync/pending"), ("GET", "/api/v1/status")]
OTHERS = [
    ("GET", "/api/orders"),
    ("GET", "/api/v1/export/price-updates"),
    ("POST", "/api/v1/sync/request"),
]


def test_polls_and_other_requests_end_in_their_time_and_go_on_with_the_database(
    server: Server,
) -> None:
    seller = server.seller()
    assert [asked(seller, *poll)[0] for poll in POLLS] == [200] * 3
    with hung(server):
        for poll in POLLS:
            assert_unavailable(asked(seller, *poll), POLLED_SECONDS)
        for other in OTHERS:
            assert_unavailable(asked(seller, *other), REQUEST_SECONDS)
        ready = httpx.get(f"{server.url}/readyz", timeout=30)
        assert (ready.status_code, ready.json()["checks"]["database"]) == (503, "unavailable")
        assert httpx.get(f"{server.url}/healthz").status_code == 200
    until(lambda: asked(seller, *POLLS[0])[0] == 200, "the database", 15)
    assert [asked(seller, *one)[0] for one in POLLS + OTHERS] == [200] * 6


@pytest.mark.night
def test_many_who_wait_use_no_connection_up(server: Server) -> None:
    """More than all pools hold, of every kind, again and again, while nothing answers."""
    seller = server.seller()
    with hung(server), ThreadPoolExecutor(60) as callers:
        for _ in range(2):
            answers = list(callers.map(lambda one: asked(seller, *one), (POLLS + OTHERS) * 10))
            for answered in answers:
                assert_unavailable(answered, REQUEST_SECONDS)
    until(lambda: asked(seller, *POLLS[0])[0] == 200, "the database", 15)
    with ThreadPoolExecutor(30) as callers:
        answers = list(callers.map(lambda one: asked(seller, *one), (POLLS + OTHERS) * 5))
    assert {status for status, _, _ in answers} == {200}
    [row] = server.sql("SELECT count(*) AS n FROM pg_stat_activity WHERE usename <> 'postgres'")
    assert row["n"] < 40


@pytest.mark.night
def test_an_import_that_the_hang_interrupts_comes_to_its_end(server: Server) -> None:
    seller = server.seller()
    upload_id = seller.upload(inventory(300))
    with hung(server):
        time.sleep(2)
    assert seller.finished(upload_id)["state"] == "done"
