"""kill -9 of the worker while a rollback is prepared, and while its cards move: nothing is lost,
nothing is done twice, it comes to its end.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.system.inventories import FIRST, NOW, SECOND
from tests.system.processes import Seller, Server, a_folder, kill, until

import soak
from builders import a_csv, a_row, read_csv
from cardsync.processes import embedded

ROWS, SLAB = 100, 20
SLABS = ROWS // SLAB
SOAK_ROUNDS = soak.count("CARDSYNC_SOAK_ROUNDS", 30, 3)
ROLLBACK = "SELECT * FROM price_rollback WHERE seller_id = %(seller)s"
KEPT = (
    "SELECT count(*) AS cards, min(price) AS lowest, max(price) AS highest"
    " FROM price_rollback_card WHERE seller_id = %(seller)s"
)
TASKS = "SELECT status FROM agent_task WHERE seller_id = %(seller)s AND kind = 'apply_rollback'"
CARDS = "SELECT DISTINCT price, target_price FROM card WHERE seller_id = %(seller)s"
MOVED = "SELECT moved FROM repricing_event WHERE seller_id = %(seller)s AND settled_at IS NOT NULL"
HISTORY = """
    SELECT price, count(*) AS cards FROM price_observation WHERE seller_id = %(seller)s
    GROUP BY price ORDER BY price
"""
STATE = (
    "SELECT lease_token, rollback_until, export_fingerprint FROM sync_state"
    " WHERE seller_id = %(seller)s"
)
WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
FIRST_OF_SLAB = (
    "SELECT id FROM card WHERE seller_id = %(seller)s ORDER BY id OFFSET %(rows)s LIMIT 1"
)


@dataclass(frozen=True)
class Asked:
    """A seller whose cards went from 1.20 to 1.39, and the rollback of that run."""

    seller: Seller
    run_id: int

    def rollback(self) -> dict[str, Any]:
        return self.seller.sql(ROLLBACK)[0]

    def card_of_slab(self, slab: int) -> int:
        return int(self.seller.sql(FIRST_OF_SLAB, rows=slab * SLAB)[0]["id"])

    def ask(self) -> int:
        with self.seller.http() as http:
            answer = http.post("/api/pricing/rollbacks", json={"run_id": self.run_id})
        assert answer.status_code == 201, answer.text
        return int(answer.json()["id"])

    def served(self) -> bytes:
        return self.seller.get("/api/v1/export/price-updates").content

    def report(self) -> None:
        """The agent imported the file: more cards than the request moves by itself."""
        body = {
            "imported_at": NOW.isoformat(),
            "row_count": ROWS,
            "file_sha256": hashlib.sha256(self.served()).hexdigest(),
        }
        with self.seller.http() as http:
            answer = http.post("/api/v1/repricing_events", json=body)
        assert answer.status_code == 201, answer.text

    def reaches(self, state: str) -> None:
        until(
            lambda: (
                self.rollback()["state"] == state
                and self.seller.sql(STATE)[0]["lease_token"] is None
            ),
            lambda: (
                f"{state}, not {self.rollback()}; the server says:\n"
                f"{self.seller.server.said()[-3000:]}"
            ),
            60,
        )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_folder() as folder, Server(folder, SLAB_ROWS=str(SLAB), LEASE_SECONDS="1") as server:
        yield server


def a_shop(server: Server) -> Asked:
    until(lambda: server.children("worker"), "a worker")
    seller = server.seller()
    for exported_at, price in ((FIRST, "1.20"), (SECOND, "1.39")):
        file = a_csv(*(a_row(n, market="1.40", price=price) for n in range(1, ROWS + 1)))
        assert seller.finished(seller.upload(file, exported_at))["state"] == "done"
    return Asked(seller, seller.get("/api/pricing/runs").json()["runs"][-1]["id"])


@contextmanager
def blocking(server: Server, query: str, **values: Any) -> Iterator[None]:
    """Make everybody who needs the same rows wait until the block ends."""
    with (
        embedded.running(server.data_dir) as database,
        psycopg.connect(database.admin_url()) as blocker,
    ):
        blocker.execute(query, values)
        yield
        blocker.rollback()


def kill_worker(server: Server) -> None:
    kill(*server.children("worker"))


@contextmanager
def worker_stands(server: Server) -> Iterator[None]:
    for process in server.children("worker"):
        process.suspend()
    yield
    for process in server.children("worker"):
        process.resume()


def killed_while_prepared(asked: Asked, slab: int) -> None:
    """Behind so many committed slabs, in the middle of the next."""
    server = asked.seller.server
    row = (
        "INSERT INTO price_rollback_card (seller_id, rollback_id, card_id, price)"
        " VALUES (%(seller)s, %(rollback)s, %(card)s, 9)"
    )
    card, before = asked.card_of_slab(slab), asked.card_of_slab(slab - 1) if slab else 0
    with ExitStack() as stack:
        with worker_stands(server):
            rollback = asked.ask()
            stack.enter_context(
                blocking(server, row, seller=asked.seller.id, rollback=rollback, card=card)
            )
        until(
            lambda: asked.rollback()["prepared_to"] >= before and server.sql(WAITING),
            f"{slab} slabs",
        )
        kill_worker(server)


def is_ready(asked: Asked) -> None:
    asked.reaches("ready")
    told = asked.rollback()
    [kept] = asked.seller.sql(KEPT)
    assert (told["cards"], kept["cards"], str(kept["lowest"]), str(kept["highest"])) == (
        ROWS,
        ROWS,
        "1.2000",
        "1.2000",
    )
    assert asked.seller.sql(TASKS) == [{"status": "pending"}]
    assert {row["TCG Marketplace Price"] for row in read_csv(asked.served())} == {"1.2000"}


def is_applied(asked: Asked) -> None:
    asked.reaches("applied")
    assert [(str(row["price"]), row["target_price"]) for row in asked.seller.sql(CARDS)] == [
        ("1.2000", None)
    ]
    assert asked.seller.sql(MOVED) == [{"moved": ROWS}]
    assert [(str(row["price"]), row["cards"]) for row in asked.seller.sql(HISTORY)] == [
        ("1.2000", ROWS),
        ("1.3900", ROWS),
    ]
    assert asked.seller.sql(TASKS) == [{"status": "completed"}]
    [state] = asked.seller.sql(STATE)
    assert (state["rollback_until"], state["export_fingerprint"] is None) == (None, False)
    assert read_csv(asked.served()) == []


def killed_while_moved(asked: Asked, slab: int) -> None:
    server = asked.seller.server
    card = "SELECT 1 FROM card WHERE seller_id = %(seller)s AND id = %(card)s FOR UPDATE"
    with blocking(server, card, seller=asked.seller.id, card=asked.card_of_slab(slab)):
        asked.report()
        until(lambda: server.sql(WAITING), f"slab {slab}")
        kill_worker(server)


def test_killed_between_two_slabs(server: Server) -> None:
    """Both the preparation and the cards that move back are killed."""
    asked = a_shop(server)
    killed_while_prepared(asked, 3)
    is_ready(asked)
    killed_while_moved(asked, 2)
    assert asked.rollback()["state"] == "served"
    is_applied(asked)


def test_killed_when_all_is_written_and_not_yet_told(server: Server) -> None:
    """The last transaction is missing, of the preparation and of the cards that move."""
    asked = a_shop(server)
    with blocking(server, "LOCK TABLE agent_task IN SHARE MODE"):
        asked.ask()
        until(
            lambda: (
                asked.rollback()["prepared_to"] >= asked.card_of_slab(SLABS - 1)
                and server.sql(WAITING)
            ),
            "ready",
        )
        kill_worker(server)
    assert asked.seller.sql(TASKS) == []
    is_ready(asked)
    with blocking(
        server,
        "SELECT 1 FROM agent_task WHERE seller_id = %(seller)s FOR UPDATE",
        seller=asked.seller.id,
    ):
        asked.report()
        until(lambda: server.sql(WAITING), "applied")
        kill_worker(server)
    assert asked.rollback()["state"] == "served"
    is_applied(asked)


@pytest.mark.soak
@pytest.mark.parametrize("slab", range(SLABS))
def test_killed_in_every_slab(server: Server, slab: int) -> None:
    asked = a_shop(server)
    killed_while_prepared(asked, slab)
    is_ready(asked)
    killed_while_moved(asked, slab)
    is_applied(asked)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SOAK_ROUNDS))
def test_killed_at_any_moment(server: Server, number: int) -> None:
    asked = a_shop(server)
    asked.ask()
    time.sleep(random.uniform(0, 0.3))  # the moment is what is tested
    kill_worker(server)
    is_ready(asked)
    asked.report()
    time.sleep(random.uniform(0, 0.3))
    kill_worker(server)
    is_applied(asked)
