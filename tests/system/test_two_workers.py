"""Several worker processes on one database: every upload is done once, and a seller's in order."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.chaos.proxy import Proxy
from tests.system.processes import Seller, Server, a_folder, processes_of, told, until

from builders import a_csv, a_row
from cardsync.operations.processes import embedded
from cardsync.operations.processes.worker_memory import FRUGAL

SELLERS, UPLOADS, ROWS = 4, 5, 300
MOST = 4096 << 20
# Imports, pictures, catalogs, notices and what is sent have a row each.
ROWS_OF_A_WORKER = 5


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_folder() as folder, Server(folder, SLAB_ROWS="50") as started:
        yield started


def a_file(edition: int) -> bytes:
    return a_csv(
        *(
            a_row(n, market=f"{1 + edition / 10:.2f}", price="1.00", quantity=1 + n % 3)
            for n in range(1, ROWS + 1)
        )
    )


@pytest.mark.night
def test_three_workers_share_the_work(server: Server) -> None:
    with ExitStack() as stack:
        extra = [server.launch("worker"), server.launch("worker")]
        for process in extra:
            stack.callback(process.kill)
        until(lambda: workers(server) == 3 * ROWS_OF_A_WORKER, "three workers", 60)
        # However it was begun, each takes memory as a worker does.
        for process in [*extra, *server.children("worker")]:
            assert FRUGAL.items() <= begun_with(process.pid).items()
            assert psutil.Process(process.pid).rlimit(psutil.RLIMIT_DATA) == (MOST, MOST)
        sellers = [server.seller() for _ in range(SELLERS)]
        ids: dict[int, list[int]] = {seller.id: [] for seller in sellers}
        for edition in range(UPLOADS):
            for seller in sellers:
                ids[seller.id].append(seller.upload(a_file(edition)))
        for seller in sellers:
            assert {seller.finished(upload_id, 90)["state"] for upload_id in ids[seller.id]} == {
                "done"
            }
            assert_each_once_and_in_order(seller, ids[seller.id])
        for process in extra:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(120) for process in extra] == [0, 0], server.said()[-2000:]
    assert server.ready()  # the last to leave the database is not the first who left


def begun_with(pid: int) -> dict[str, str]:
    named = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in named if "=" in pair)


def workers(server: Server) -> int:
    """How many rows the processes have that wait for jobs."""
    query = (
        "SELECT count(*) AS n FROM procrastinate_workers"
        " WHERE last_heartbeat > now() - interval '30 s'"
    )
    return int(server.sql(query)[0]["n"])


def assert_each_once_and_in_order(seller: Seller, ids: list[int]) -> None:
    uploads = seller.sql(
        "SELECT id, attempts, begun_at, finished_at FROM upload WHERE seller_id = %(seller)s"
        " ORDER BY id"
    )
    assert [row["id"] for row in uploads] == ids
    assert [row["attempts"] for row in uploads] == [1] * UPLOADS
    for earlier, later in pairwise(uploads):
        assert earlier["finished_at"] <= later["begun_at"]
    counts = seller.sql("""
        SELECT (SELECT count(*) FROM price_run WHERE seller_id = %(seller)s) AS runs,
               (SELECT count(*) FROM activity
                   WHERE seller_id = %(seller)s AND action <> 'upload.accepted') AS imports,
               (SELECT count(*) FROM price_change WHERE seller_id = %(seller)s) AS changes,
               (SELECT count(*) FROM price_observation
                   WHERE seller_id = %(seller)s) AS observations,
               (SELECT count(*) FROM card
                   WHERE seller_id = %(seller)s AND market = %(market)s) AS cards
    """, market=1 + (UPLOADS - 1) / 10)  # fmt: skip
    assert counts[0]["runs"] == counts[0]["imports"] == UPLOADS
    assert counts[0]["cards"] == ROWS
    assert counts[0]["observations"] == ROWS * (UPLOADS - 1)


def test_a_worker_leaves_when_told(server: Server) -> None:
    newest = "SELECT coalesce(max(id), 0) AS id FROM procrastinate_workers"
    last = server.sql(newest)[0]["id"]
    process = server.launch("worker")
    try:
        before = processes_of(server.data_dir)
        until(lambda: server.sql(newest)[0]["id"] > last, "the second worker", 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0, server.said()[-2000:]
        assert process.pid not in [other.pid for other in processes_of(server.data_dir)], told(
            before
        )
    finally:
        process.kill()


def test_a_worker_waits_for_a_database_that_is_away_and_says_why(
    server: Server, tmp_path: Path
) -> None:
    """No init need start it again: one waits the longer, the more often it had to."""
    newest = "SELECT coalesce(max(id), 0) AS id FROM procrastinate_workers"
    last = server.sql(newest)[0]["id"]
    alive = tmp_path / "alive"
    with embedded.running(server.data_dir) as database:
        given = conninfo_to_dict(database.url())
        proxy = Proxy(Path(str(given["host"])) / f".s.PGSQL.{given.get('port') or 5432}")
        through = f"postgresql://{given['user']}@127.0.0.1:{proxy.port}/{given['dbname']}"
        settings = {"DATABASE_URL": through, "WORKER_ALIVE_FILE": str(alive)}
        env = server.env | {f"CARDSYNC_{name}": value for name, value in settings.items()}
        before = len(server.said())
        with proxy.faulty("cut"):
            process = server.launch("worker", env=env)
            until(alive.exists, "the sign of life")
            until(lambda: "trying again until it can" in server.said()[before:], server.said)
            time.sleep(2.5)  # two more tries
            assert process.poll() is None, server.said()[before:]
            assert server.said()[before:].count("trying again") == 1
            told_to_leave = server.launch("worker", env=env)
            until(lambda: server.said()[before:].count("trying again") == 2, server.said)
            told_to_leave.send_signal(signal.SIGTERM)
            assert told_to_leave.wait(30) == 0, server.said()[before:]
        try:
            until(lambda: server.sql(newest)[0]["id"] > last, "the worker to begin", 30)
        finally:
            process.kill()
            proxy.close()
