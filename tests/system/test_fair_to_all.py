"""One seller of many cards asks for all that is heavy at once: the web process stays small, and a
neighbor is answered meanwhile. It alone sees the memory of a real web process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from tests.system.inventories import inventory
from tests.system.processes import Seller, Server, a_folder

pytestmark = pytest.mark.day

MOST_BYTES = 300 << 20
ROWS = 12_000
NEIGHBORS = 10
RULES = {"rules": [{"name": "All", "priority": 1, "query": "", "adjust_bp": -500}]}
HEAVY = (
    ("POST", "/api/pricing/preview", RULES),
    ("POST", "/api/pricing/preview?format=csv", RULES),
    ("POST", "/api/pricing/preview?format=parquet", RULES),
    ("GET", "/api/pricing/presets", None),
    ("POST", "/api/pricing/preview/draft", {"rule": {"query": "", "adjust_bp": -700}}),
    ("POST", "/api/pricing/backtest", RULES | {"from": "2020-01-01", "to": "2100-01-01"}),
    ("GET", "/api/pricing/updates.csv", None),
    ("GET", "/api/v1/export/price-updates", None),
    ("GET", "/api/cards/export.csv", None),
    ("GET", "/api/orders/export.csv", None),
    ("GET", "/api/v1/agent/activity/export.csv", None),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_folder() as folder, Server(folder, SLAB_ROWS="20000") as started:
        yield started


def asked(seller: Seller, one: tuple[str, str, object]) -> int:
    method, path, body = one
    with seller.http() as http:
        return http.request(method, path, json=body, timeout=300).status_code


def test_a_web_process_stays_small_and_a_neighbor_is_answered_first(server: Server) -> None:
    greedy, neighbor = server.seller(), server.seller()
    greedy.finished(greedy.upload(inventory(ROWS)))
    webs = [psutil.Process(one.pid) for one in server.children("web")]
    over, seen = threading.Event(), [0]

    def watch() -> None:
        while not over.wait(0.02):
            seen[0] = max(seen[0], *(one.memory_info().rss for one in webs))

    order: list[str] = []

    def heavy(one: tuple[str, str, object]) -> int:
        # A seller's own requests wait for each other, and some longer than they may.
        while (status := asked(greedy, one)) == 503:
            over.wait(0.5)
        order.append("heavy")
        return status

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        with ThreadPoolExecutor(len(HEAVY)) as threads:
            answers = [threads.submit(heavy, one) for one in HEAVY]
            for _ in range(NEIGHBORS):
                assert asked(neighbor, ("GET", "/api/v1/status", None)) == 200
                order.append("neighbor")
            statuses = [answer.result() for answer in answers]
    finally:
        over.set()
        watching.join(10)
    assert statuses == [200] * len(HEAVY)
    assert seen[0] < MOST_BYTES
    # The last of the neighbor's many requests is answered before the last of the heavy ones.
    assert "heavy" in order[len(order) - order[::-1].index("neighbor") :]
    # The heavy reads were elsewhere.
    assert server.children("heavy")
