"""Two hosts behind a proxy, each with a web process, a worker and a data folder of its own, on one
database and one bucket: with one web process and one worker killed, no request of an agent that
tries again is lost, and nothing is doubled.

It alone finds what a host keeps to itself.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import pytest
from tests.s3_server import s3_server
from tests.system.plain_proxy import plain_proxy
from tests.system.processes import Seller, Server, a_folder, kill, made_before, until

from builders import a_csv, a_row, an_order
from cardsync.operations.processes import embedded

pytestmark = pytest.mark.day

SECRET = "the secret of two hosts"
UPLOADS, ROWS, ORDERS = 6, 200, 120


@dataclass
class Hosts:
    home: Server
    first: Server
    second: Server
    url: str


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with ExitStack() as stack:
        folders = [stack.enter_context(a_folder()) for _ in range(4)]
        home = Server(folders[0])
        subprocess.run(["cp", "-a", made_before(), home.data_dir], check=True)
        (home.data_dir / "secret.key").write_text(SECRET)
        database = stack.enter_context(embedded.running(home.data_dir))
        given = {
            "DATABASE_URL": database.url(),
            "MIGRATION_DATABASE_URL": database.admin_url(),
            "OBJECT_STORE_URL": "s3://two-hosts",
            "SECRET_KEY": SECRET,
            "SLAB_ROWS": "50",
        }
        bucket = stack.enter_context(s3_server(folders[1]))
        started = []
        for folder in folders[2:]:
            host = Server(folder, folder / "data", **given)
            host.env |= bucket
            started.append(stack.enter_context(host))
        url = stack.enter_context(plain_proxy([host.port for host in started]))
        yield Hosts(home, *started, url)


class Agent:
    """It tries each request again until it is answered."""

    def __init__(self, hosts: Hosts, seller: Seller) -> None:
        headers = {"Authorization": f"Bearer {seller.api_key}"}
        self.http = httpx.Client(base_url=hosts.url, headers=headers, timeout=30)
        self.again = 0

    def __call__(self, method: str, path: str, **options: object) -> httpx.Response:
        deadline = time.monotonic() + 120
        while True:
            try:
                answer = self.http.request(method, path, **options)  # type: ignore[arg-type]
                if answer.status_code < 500:
                    return answer
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, f"{method} {path} was never answered"
            self.again += 1
            time.sleep(0.1)

    def bring(self, edition: int) -> int:
        slot = self("POST", "/api/v1/sync/upload-request", json={}).json()
        data = gzip.compress(an_inventory(edition))
        assert self("PUT", slot["upload_url"], content=data).status_code == 200
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 100 + edition))
        named = {"key": slot["key"], "exported_at": at}
        answer = self("POST", "/api/v1/sync", json=named)
        assert answer.status_code == 202, answer.text
        return int(answer.json()["upload_id"])


def an_inventory(edition: int) -> bytes:
    market = f"{1 + edition / 10:.2f}"
    return a_csv(*(a_row(n, market=market, price="1.00", quantity=1) for n in range(1, ROWS + 1)))


def looped(work: Callable[[], object], over: threading.Event, counted: list[int]) -> None:
    while not over.is_set():
        work()
        counted[0] += 1


def test_nothing_is_lost_or_doubled_with_one_of_each_killed(hosts: Hosts) -> None:
    seller = hosts.home.seller()
    agent, polling = Agent(hosts, seller), Agent(hosts, seller)
    over, polls = threading.Event(), [0]
    poll = lambda: polling("GET", "/api/v1/sync/pending")  # noqa: E731
    thread = threading.Thread(target=looped, args=(poll, over, polls))
    thread.start()
    try:
        ids, orders = [], []
        for edition in range(UPLOADS):
            ids.append(agent.bring(edition))
            part = [an_order(f"A-{edition}-{n}") for n in range(ORDERS // UPLOADS)]
            kind = {"Content-Type": "application/json"}
            answer = agent("POST", "/api/v1/orders", content=json.dumps(part), headers=kind)
            assert answer.status_code == 202, answer.text
            orders.append(answer.json()["upload_id"])
            if edition == 2:
                kill(*hosts.first.children("web"), *hosts.second.children("worker"))
        before = polls[0]
        until(lambda: polls[0] > before, "a poll after the kills")

        def ended() -> bool:
            told = [agent("GET", f"/api/v1/uploads/{one}").json()["state"] for one in ids + orders]
            assert set(told) <= {"pending", "processing", "queued", "done", "accepted"}, told
            return set(told) == {"done"}

        until(ended, "all uploads", 180)
    finally:
        over.set()
        thread.join(60)
    # Both hosts go on, the killed processes too.
    until(lambda: hosts.first.ready() and hosts.second.ready(), "both hosts")
    [found] = seller.sql(
        """
        SELECT (SELECT count(*) FROM upload WHERE seller_id = %(seller)s) AS uploads,
               (SELECT count(*) FROM price_run WHERE seller_id = %(seller)s) AS runs,
               (SELECT count(*) FROM orders WHERE seller_id = %(seller)s) AS orders,
               (SELECT count(DISTINCT order_number) FROM orders
                 WHERE seller_id = %(seller)s) AS numbers,
               (SELECT count(*) FROM card WHERE seller_id = %(seller)s AND market = %(market)s)
                 AS cards,
               (SELECT count(*) FROM price_observation WHERE seller_id = %(seller)s) AS seen
        """,
        market=1 + (UPLOADS - 1) / 10,
    )
    assert found["cards"] == ROWS
    assert found["seen"] == ROWS * (UPLOADS - 1)
    assert found["runs"] == UPLOADS
    assert found["orders"] == found["numbers"] == ORDERS
    # The agent tried an acceptance again whose answer was lost: orders that are sent twice are
    # another upload, and the same rows; an object is accepted once.
    assert UPLOADS * 2 <= found["uploads"] <= UPLOADS * 2 + agent.again
    assert len(set(ids)) == UPLOADS
