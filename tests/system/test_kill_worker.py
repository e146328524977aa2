"""kill -9 of the worker in the middle of an import: it ends exactly as if nothing had happened."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.system.inventories import FIRST, SECOND, inventory
from tests.system.processes import Seller, Server, a_folder, assert_same, kill, snapshot, until

import soak
from builders import read_csv
from cardsync.processes import embedded

ROWS = 2000
EVERYDAY_ROUNDS = 1
SOAK_ROUNDS = soak.count("CARDSYNC_SOAK_ROUNDS", 30, 3)


@dataclass(frozen=True)
class Ground:
    server: Server
    files: tuple[bytes, bytes]
    undisturbed: dict[str, Any]
    seconds: tuple[float, float]


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """A server, two files, and what they come to when nobody is killed."""
    files = inventory(ROWS), inventory(ROWS, 2)
    with a_folder() as folder, Server(folder) as server:
        seller, seconds = server.seller(), []
        for data, exported_at in zip(files, (FIRST, SECOND), strict=True):
            began = time.monotonic()
            report = seller.finished(seller.upload(data, exported_at))
            seconds.append(time.monotonic() - began)
            assert report["state"] == "done", report
            assert report["changed"] > 100
        taken = snapshot(seller)
        assert report["gone"] > 50
        assert len(taken["observations"]) > 500
        yield Ground(server, files, taken, (seconds[0], seconds[1]))


def kill_worker(server: Server) -> None:
    kill(*server.children("worker"))


OPEN = "SELECT 1 FROM upload WHERE seller_id = %(seller)s AND state IN ('queued', 'processing')"


def progressed(seller: Seller) -> bool:
    """Between two slabs, or behind all of them where the import was faster than the look at it."""
    progress = seller.get("/api/v1/status").json()["phase_progress"]
    between = bool(progress and 0 < progress["done"] < progress["total"])
    return between or not seller.sql(OPEN)


def one_round(ground: Ground, first: float | None, second: float | None) -> None:
    """Kill once in each of two uploads: after so many seconds, or (None) as soon as a slab is
    committed.
    """
    server = ground.server
    until(lambda: server.children("worker"), "a worker")
    seller = server.seller()
    early = seller.upload(ground.files[0], FIRST)
    wait_for_moment(seller, first)
    kill_worker(server)
    late = seller.upload(ground.files[1], SECOND)
    assert seller.finished(early)["state"] == "done"
    wait_for_moment(seller, second)
    kill_worker(server)
    assert seller.finished(late)["state"] == "done", server.said()[-2000:]
    assert_same(snapshot(seller), ground.undisturbed)


def attempts(seller: Seller) -> int:
    return int(
        seller.sql("SELECT sum(attempts) AS n FROM upload WHERE seller_id = %(seller)s")[0]["n"]
    )


LAST_ABSENT = """
    SELECT id FROM card WHERE seller_id = %(seller)s AND NOT marketplace_id = ANY(%(named)s)
    ORDER BY id DESC LIMIT 1 FOR UPDATE
"""
WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def wait_for_moment(seller: Seller, moment: float | None) -> None:
    if moment is None:
        until(lambda: progressed(seller), "a committed slab")
    else:
        time.sleep(moment)  # the moment is what is tested


def test_killed_between_two_slabs(ground: Ground) -> None:
    one_round(ground, None, None)


def test_killed_among_the_rows_that_are_gone(ground: Ground) -> None:
    """Tombstones come last, with the end of the upload, or not at all."""
    server, seller = ground.server, ground.server.seller()
    seller.finished(seller.upload(ground.files[0], FIRST))
    named = [int(row["TCGplayer Id"]) for row in read_csv(ground.files[1])]
    with (
        embedded.running(server.data_dir) as database,
        psycopg.connect(database.admin_url()) as blocker,
    ):
        assert blocker.execute(LAST_ABSENT, {"seller": seller.id, "named": named}).fetchone()
        late = seller.upload(ground.files[1], SECOND)
        until(lambda: server.sql(WAITING), "the import to meet the locked row")
        assert not seller.sql(
            "SELECT 1 FROM card WHERE seller_id = %(seller)s AND gone"
            " AND NOT marketplace_id = ANY(%(named)s)",
            named=named,
        )
        kill_worker(server)
    assert seller.finished(late)["gone"] == ground.undisturbed["uploads"][1]["report"]["gone"]
    assert_same(snapshot(seller), ground.undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(EVERYDAY_ROUNDS))
def test_killed_at_a_random_moment(ground: Ground, number: int) -> None:
    share = (number + random.random()) / EVERYDAY_ROUNDS
    one_round(ground, share * ground.seconds[0], share * ground.seconds[1])


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SOAK_ROUNDS))
def test_killed_at_any_moment(ground: Ground, number: int) -> None:
    one_round(
        ground,
        random.uniform(0, ground.seconds[0] * 1.1),
        random.uniform(0, ground.seconds[1] * 1.1),
    )


@pytest.mark.slow
def test_killed_again_and_again(ground: Ground) -> None:
    """Each life gets a little further; every slab that was committed stays."""
    server = ground.server
    seller = server.seller()
    ids = [seller.upload(ground.files[0], FIRST), seller.upload(ground.files[1], SECOND)]
    lives = 3
    for life in range(1, lives + 1):
        until(lambda life=life: attempts(seller) >= life, "the next life")  # type: ignore[misc]
        until(lambda: progressed(seller), "a committed slab")
        kill_worker(server)
    assert [seller.finished(upload_id)["state"] for upload_id in ids] == ["done", "done"]
    assert_same(snapshot(seller), ground.undisturbed)
