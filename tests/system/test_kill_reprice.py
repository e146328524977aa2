"""kill -9 of the worker in every slab of a pricing of the stored cards: it is taken up again and
ends as if nothing had happened.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.system.inventories import FIRST, SECOND
from tests.system.processes import Seller, Server, a_folder, assert_same, kill, snapshot, until

import soak
from builders import a_csv, a_row
from cardsync.processes import embedded

ROWS, SLAB = 120, 20
SLABS = ROWS // SLAB
SOAK_ROUNDS = soak.count("CARDSYNC_SOAK_ROUNDS", 30, 3)
FILE = a_csv(*(a_row(n, market="1.20", price="1.20") for n in range(1, ROWS + 1)))
RUNS = "SELECT * FROM price_run WHERE seller_id = %(seller)s AND upload_id IS NULL ORDER BY id"
TASKS = "SELECT kind, status FROM agent_task WHERE seller_id = %(seller)s ORDER BY id"
CHANGES = """
    SELECT c.marketplace_id, p.old_price, p.new_price FROM price_change p
    JOIN card c ON c.seller_id = p.seller_id AND c.id = p.card_id
     WHERE p.seller_id = %(seller)s AND p.run_id = %(run)s ORDER BY 1
"""
WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
WRITTEN = (
    "SELECT 1 FROM sync_state"
    " WHERE seller_id = %(seller)s AND lease_holder = 'reprice' AND work_done = %(rows)s"
)


@dataclass(frozen=True)
class Ground:
    server: Server
    undisturbed: dict[str, Any]
    seconds: float


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """A server, and what two uploads come to whose rules have queries, when nobody is killed."""
    with a_folder() as folder, Server(folder, SLAB_ROWS=str(SLAB), LEASE_SECONDS="1") as server:
        seller = a_shop(server)
        began = time.monotonic()
        seller.upload(FILE, SECOND)
        ended(seller)
        seconds = time.monotonic() - began
        yield Ground(server, taken(seller), seconds)


def a_shop(server: Server) -> Seller:
    """Cards that ask for 1.32; from the next upload on they will ask for 1.44."""
    until(lambda: server.children("worker"), "a worker")
    seller = server.seller()
    with seller.http() as http:
        rule = {"name": "All", "state": "published", "query": "market>=1", "adjust_bp": 1000}
        made = http.post("/api/pricing/rules", json=rule)
        assert made.status_code == 201, made.text
        seller.upload(FILE, FIRST)
        ended(seller, 1)
        changed = http.patch(f"/api/pricing/rules/{made.json()['id']}", json={"adjust_bp": 2000})
        assert changed.status_code == 200, changed.text
    return seller


def ended(seller: Seller, count: int = 2) -> None:
    """Wait until that many runs are over and nobody holds the lease."""
    free = "SELECT 1 FROM sync_state WHERE seller_id = %(seller)s AND lease_token IS NULL"

    def over() -> bool:
        runs = seller.sql(RUNS)
        return [run["state"] for run in runs] == ["completed"] * count and bool(seller.sql(free))

    until(
        over,
        lambda: (
            f"{count} runs, of {seller.sql(RUNS)}; the server says:\n{seller.server.said()[-3000:]}"
        ),
        60,
    )


def taken(seller: Seller) -> dict[str, Any]:
    """Everything that the runs leave behind, in a form that two sellers share."""
    runs = seller.sql(RUNS)
    return snapshot(seller) | {
        "reprices": [(run["trigger"], run["state"], without_ids(run["summary"])) for run in runs],
        "of_the_last": seller.sql(CHANGES, run=runs[-1]["id"]),
        "tasks": seller.sql(TASKS),
    }


def without_ids(summary: dict[str, Any]) -> dict[str, Any]:
    """The run without what differs between two shops: the key of its receipts and the id of its
    upload.
    """
    return {
        name: value
        for name, value in summary.items()
        if name not in ("receipts", "follows", "rules")
    }


def is_as_undisturbed(ground: Ground, seller: Seller) -> None:
    ended(seller)
    found = taken(seller)
    assert_same(found, ground.undisturbed)
    assert [(str(c["old_price"]), str(c["new_price"])) for c in found["of_the_last"]] == [
        ("1.2000", "1.4400")
    ] * ROWS
    assert found["tasks"] == [{"kind": "apply_price_updates", "status": "pending"}]
    receipt = seller.get("/api/v1/pricing/explain/1").json()["historical_breakdown"]
    assert (receipt["final_price"], receipt["reflects_current_price"]) == ("1.44", True)


@contextmanager
def locked(server: Server, query: str, **values: Any) -> Iterator[psycopg.Connection[Any]]:
    """Make every writer of these rows wait until the block ends."""
    with (
        embedded.running(server.data_dir) as database,
        psycopg.connect(database.admin_url()) as blocker,
    ):
        assert blocker.execute(query, values).fetchall()
        yield blocker


def rows_locked(seller: Seller, boundary: int) -> Any:
    """Both writers stop at the slabs behind so many: an upload whose values are known already
    touches none of them itself.
    """
    firsts = [boundary * SLAB + 1, (boundary + 1) * SLAB + 1]
    query = (
        "SELECT 1 FROM card WHERE seller_id = %(seller)s AND marketplace_id = ANY(%(firsts)s)"
        " FOR UPDATE"
    )
    return locked(seller.server, query, seller=seller.id, firsts=firsts)


def stopped_at(seller: Seller, boundary: int) -> None:
    """Wait until that many slabs are committed and the writers wait for the rows that come next."""
    until(
        lambda: (
            seller.sql(WRITTEN, rows=boundary * SLAB)
            and len(seller.server.sql(WAITING)) >= min(2, SLABS - boundary)
        ),
        f"the worker to stop behind {boundary} slabs",
    )


def kill_worker(server: Server) -> None:
    kill(*server.children("worker"))


def killed_at(ground: Ground, boundary: int) -> Seller:
    seller = a_shop(ground.server)
    with rows_locked(seller, boundary):
        seller.upload(FILE, SECOND)
        stopped_at(seller, boundary)
        kill_worker(ground.server)
    return seller


def test_killed_behind_its_receipts_and_before_its_first_slab(ground: Ground) -> None:
    is_as_undisturbed(ground, killed_at(ground, 0))


def test_killed_between_two_slabs_it_is_whole_and_its_receipts_price_the_same(
    ground: Ground,
) -> None:
    seller = killed_at(ground, 3)
    is_as_undisturbed(ground, seller)
    run_id = seller.sql(RUNS)[-1]["id"]
    ran = ground.server.run("pricing", "replay", str(run_id), "--json")
    assert (ran.code, json.loads(ran.out)) == (0, {"run_id": run_id, "cards": ROWS, "differ": 0}), (
        ran.err
    )


def test_killed_when_all_is_written_and_not_yet_told(ground: Ground) -> None:
    """The run's last transaction is missing: the next life finds nothing to write, and tells of
    everything.
    """
    seller = a_shop(ground.server)
    with ExitStack() as outer:
        with rows_locked(seller, 0):
            seller.upload(FILE, SECOND)
            stopped_at(seller, 0)
            run = (
                "SELECT 1 FROM price_run"
                " WHERE seller_id = %(seller)s AND state = 'running' FOR NO KEY UPDATE"
            )
            outer.enter_context(locked(ground.server, run, seller=seller.id))
        until(
            lambda: seller.sql(WRITTEN, rows=ROWS) and seller.server.sql(WAITING),
            "the end of the run",
        )
        kill_worker(ground.server)
    is_as_undisturbed(ground, seller)


@pytest.mark.soak
@pytest.mark.parametrize("boundary", range(SLABS))
def test_killed_in_every_slab(ground: Ground, boundary: int) -> None:
    is_as_undisturbed(ground, killed_at(ground, boundary))


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SOAK_ROUNDS))
def test_killed_at_any_moment(ground: Ground, number: int) -> None:
    seller = a_shop(ground.server)
    seller.upload(FILE, SECOND)
    time.sleep(random.uniform(0, ground.seconds * 1.1))  # the moment is what is tested
    kill_worker(ground.server)
    is_as_undisturbed(ground, seller)
