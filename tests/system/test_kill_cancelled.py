"""kill -9 of the worker around a cancel: it ends cancelled or done, as the answer said, nothing
hangs, and the next upload is whole.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.system.inventories import FIRST, SECOND, inventory
from tests.system.processes import (
    UPLOADED,
    Seller,
    Server,
    a_folder,
    assert_same,
    kill,
    snapshot,
    until,
)

import soak
from builders import read_csv
from cardsync.processes import embedded

ROWS = 1000
EVERYDAY_ROUNDS = 1
SOAK_ROUNDS = soak.count("CARDSYNC_SOAK_ROUNDS", 30, 3)
# Two sellers that ended with the same file share these, whatever was cancelled on the way.
SHARED = ("cards", "observations", "lines", "export")
WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
AN_ABSENT_CARD = """
    SELECT id FROM card WHERE seller_id = %(seller)s AND NOT marketplace_id = ANY(%(named)s) LIMIT 1
    FOR UPDATE
"""
TOMBSTONES = (
    "SELECT id FROM card WHERE seller_id = %(seller)s AND gone"
    " AND NOT marketplace_id = ANY(%(named)s)"
)
LEFT = """
    SELECT 1 FROM sync_state WHERE seller_id = %(seller)s
       AND (cancel_requested_at IS NOT NULL OR lease_token IS NOT NULL OR lock_kind IS NOT NULL
           OR uploads_open > 0)
"""


@dataclass(frozen=True)
class Ground:
    server: Server
    files: tuple[bytes, bytes]
    named: list[int]
    undisturbed: dict[str, Any]
    seconds: float


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    files = inventory(ROWS), inventory(ROWS, 2)
    with a_folder() as folder, Server(folder) as server:
        seller = server.seller()
        seller.finished(seller.upload(files[0], FIRST))
        began = time.monotonic()
        seller.finished(seller.upload(files[1], SECOND))
        seconds = time.monotonic() - began
        named = [int(row["TCGplayer Id"]) for row in read_csv(files[1])]
        taken = snapshot(seller)
        yield Ground(server, files, named, {name: taken[name] for name in SHARED}, seconds)


def stocked(ground: Ground) -> Seller:
    """A seller with a whole inventory."""
    until(lambda: ground.server.children("worker"), "a worker")
    seller = ground.server.seller()
    seller.finished(seller.upload(ground.files[0], FIRST))
    return seller


def begun(ground: Ground) -> tuple[Seller, int]:
    """One whose next upload, which will be cancelled, is under way."""
    seller = stocked(ground)
    return seller, seller.upload(ground.files[1], SECOND)


def cancel(seller: Seller) -> int:
    with seller.http() as http:
        return http.post("/api/v1/sync/cancel").status_code


def kill_worker(ground: Ground) -> None:
    kill(*ground.server.children("worker"))


def progressed(seller: Seller, upload_id: int) -> bool:
    """Between two slabs, or behind all of them where the import was faster than the look at it."""
    progress = seller.get("/api/v1/status").json()["phase_progress"]
    between = bool(progress and 0 < progress["done"] < progress["total"])
    return between or seller.report(upload_id)["state"] in UPLOADED


def ends_as_answered(ground: Ground, seller: Seller, upload_id: int, code: int) -> None:
    report = seller.finished(upload_id)
    assert report["state"] == ("done" if code == 409 else "cancelled"), (
        code,
        ground.server.said()[-2000:],
    )
    until(lambda: not seller.sql(LEFT), "lock, lease and cancellation to be gone")
    if code != 409:
        assert seller.sql(TOMBSTONES, named=ground.named) == []
        runs = seller.sql("SELECT state FROM price_run WHERE seller_id = %(seller)s ORDER BY id")
        assert {run["state"] for run in runs[1:]} <= {"cancelled"}
        assert seller.finished(seller.upload(ground.files[1], SECOND))["state"] == "done"
    taken = snapshot(seller)
    assert_same({name: taken[name] for name in SHARED}, ground.undisturbed)


def test_killed_before_the_first_slab(ground: Ground) -> None:
    seller, upload_id = begun(ground)
    code = cancel(seller)
    kill_worker(ground)
    assert code in (200, 202)
    ends_as_answered(ground, seller, upload_id, code)


def test_killed_between_slabs_after_the_cancel(ground: Ground) -> None:
    seller, upload_id = begun(ground)
    until(lambda: progressed(seller, upload_id), "a committed slab")
    code = cancel(seller)
    kill_worker(ground)
    ends_as_answered(ground, seller, upload_id, code)


def test_killed_between_slabs_before_the_cancel(ground: Ground) -> None:
    seller, upload_id = begun(ground)
    until(lambda: progressed(seller, upload_id), "a committed slab")
    kill_worker(ground)
    ends_as_answered(ground, seller, upload_id, cancel(seller))


@pytest.mark.parametrize("first", ["cancel", "kill"])
def test_killed_in_the_last_transaction(ground: Ground, first: str) -> None:
    """It waits for a row that it is about to tombstone: every slab is committed, the end is not."""
    seller = stocked(ground)
    with (
        embedded.running(ground.server.data_dir) as database,
        psycopg.connect(database.admin_url()) as blocker,
    ):
        assert blocker.execute(
            AN_ABSENT_CARD, {"seller": seller.id, "named": ground.named}
        ).fetchone()
        upload_id = seller.upload(ground.files[1], SECOND)
        until(lambda: ground.server.sql(WAITING), "the import to meet the locked row")
        if first == "kill":
            kill_worker(ground)
        assert cancel(seller) == 202
        kill_worker(ground)
    ends_as_answered(ground, seller, upload_id, 202)


def a_random_round(ground: Ground) -> None:
    seller, upload_id = begun(ground)
    time.sleep(random.uniform(0, ground.seconds * 1.1))  # the moments are what is tested
    if random.random() < 0.5:
        kill_worker(ground)
    code = cancel(seller)
    time.sleep(random.choice((0, 0.02, 0.2)))
    kill_worker(ground)
    ends_as_answered(ground, seller, upload_id, code)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(EVERYDAY_ROUNDS))
def test_killed_at_a_random_moment(ground: Ground, number: int) -> None:
    a_random_round(ground)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SOAK_ROUNDS))
def test_killed_at_any_moment(ground: Ground, number: int) -> None:
    a_random_round(ground)
