"""A data folder on a disk without a free byte, or a read-only one. The database is elsewhere."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
from tests.system.inventories import inventory
from tests.system.processes import Seller, Server, a_folder, kill, made_before, until

from cardsync.operations.processes import embedded

pytestmark = [
    pytest.mark.day,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk"),
]

DISK_BYTES = 16_000_000
# After this time at most all is well again.
RECOVERY_SECONDS = 10


@contextmanager
def a_small_disk() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cs-disk-", dir="/tmp"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=755", "tmpfs", folder], check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("this machine mounts no tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


DATABASE_URL, MIGRATION_URL = "CARDSYNC_DATABASE_URL", "CARDSYNC_MIGRATION_DATABASE_URL"


def fill(disk: Path) -> Path:
    """Every byte of it. The file whose deletion makes room again."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert os.statvfs(disk).f_bavail == 0
    return filler


@pytest.fixture(scope="module")
def database() -> Iterator[embedded.EmbeddedServer]:
    with a_folder() as folder:
        subprocess.run(["cp", "-a", made_before(), folder / "data"], check=True)
        with embedded.running(folder / "data") as server:
            yield server


@pytest.fixture
def server(database: embedded.EmbeddedServer) -> Iterator[Server]:
    """Its log is on the disk, too."""
    with a_small_disk() as disk, a_folder() as folder:
        server = Server(folder, disk / "data", DATABASE_URL=database.url())
        server.env["CARDSYNC_MIGRATION_DATABASE_URL"] = database.admin_url()
        server.log = disk / "serve.log"
        try:
            yield server
        finally:
            with suppress(Exception):
                server.stop()


def a_seller(server: Server) -> Seller:
    return server.admin_seller(f"disk-{time.monotonic_ns()}@example.invalid", "--plan", "founder")


def put_up(seller: Seller) -> httpx.Response:
    with seller.http() as http:
        return http.post(
            "/api/v1/sync", content=inventory(3000), headers={"Content-Type": "text/csv"}
        )


def put_up_much(seller: Seller) -> httpx.Response:
    """By a client that sends all before it reads."""
    connection = HTTPConnection("127.0.0.1", seller.server.port, timeout=60)
    headers = {"Authorization": f"Bearer {seller.api_key}", "Content-Type": "text/csv"}
    try:
        connection.request("POST", "/api/v1/sync", inventory(3000) + bytes(9_000_000), headers)
        answer = connection.getresponse()
        return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())
    finally:
        connection.close()


def put_orders(seller: Seller) -> httpx.Response:
    with seller.http() as http:
        return http.post(
            "/api/v1/orders",
            json=[{"order_number": f"1A-{n}", "status": "x" * 90} for n in range(3000)],
        )


def assert_unavailable(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable"), answer.text
    assert int(answer.headers["Retry-After"]) > 0


def assert_polls_and_reads_live(server: Server, seller: Seller) -> None:
    with seller.http() as http:
        for _ in range(5):
            assert http.post("/api/v1/heartbeat", json={}).status_code == 200
            for path in (
                "/api/v1/sync/pending",
                "/api/v1/status",
                "/api/orders",
                "/api/cards",
                "/no/such/path",
            ):
                assert http.get(path).status_code in (200, 404), path


def metrics(server: Server) -> str:
    answer = httpx.get(f"http://127.0.0.1:{server.metrics_port}/metrics")
    assert answer.status_code == 200
    return answer.text


def store_state(server: Server) -> tuple[int, str]:
    answer = httpx.get(f"{server.url}/readyz", timeout=30)
    return answer.status_code, answer.json()["checks"]["object_store"]


def objects(server: Server) -> set[Path]:
    return {path for path in (server.data_dir / "objects").rglob("*") if path.is_file()}


def test_with_no_byte_free_all_but_uploads_goes_on_and_uploads_come_back_with_the_room(
    server: Server,
) -> None:
    server.start()
    seller = a_seller(server)
    pids = [process.pid for process in server.children("web")]
    filler = fill(server.data_dir.parent)
    before = objects(server)
    assert_polls_and_reads_live(server, seller)
    assert_unavailable(put_up(seller))
    assert_unavailable(put_up_much(seller))
    assert_unavailable(put_orders(seller))
    assert objects(server) == before
    until(
        lambda: store_state(server) == (503, "unavailable"),
        "readyz to tell the truth",
        RECOVERY_SECONDS,
    )
    assert 'cardsync_requests_total{method="POST",route="/api/v1/sync",status="503"}' in metrics(
        server
    )
    assert_polls_and_reads_live(server, seller)
    assert [process.pid for process in server.children("web")] == pids
    filler.unlink()
    until(lambda: store_state(server) == (200, "ok"), "readyz to tell the truth", RECOVERY_SECONDS)
    accepted = put_up(seller)
    assert accepted.status_code == 202
    assert seller.finished(accepted.json()["upload_id"])["state"] == "done"


@pytest.mark.night
def test_a_web_process_that_begins_on_a_full_disk_answers(server: Server) -> None:
    server.start()
    seller = a_seller(server)
    filler = fill(server.data_dir.parent)
    kill(*server.children("web"))

    def answers() -> bool:
        with suppress(httpx.TransportError):
            return seller.get("/api/v1/status").status_code == 200
        return False

    until(answers, "the next web process", 30)
    assert_polls_and_reads_live(server, seller)
    metrics(server)
    filler.unlink()
    until(lambda: put_up(seller).status_code == 202, "uploads", RECOVERY_SECONDS)


@pytest.mark.night
def test_a_start_on_a_full_disk_needs_no_secret_key_before_somebody_asks_for_an_upload_url(
    server: Server,
) -> None:
    server.data_dir.mkdir()
    # Another host, which has a secret of its own, makes the seller.
    other = Server(server.folder, server.folder / "other", DATABASE_URL=server.env[DATABASE_URL])
    other.env[MIGRATION_URL] = server.env[MIGRATION_URL]
    made = a_seller(other)
    filler = fill(server.data_dir.parent)
    server.log = server.folder / "serve.log"
    server.begin()
    until(lambda: "cardsync serves " in server.said(), server.said)
    seller = Seller(server, made.id, made.api_key)
    assert_polls_and_reads_live(server, seller)
    with seller.http() as http:
        assert_unavailable(http.post("/api/v1/sync/upload-request", json={}))
        assert not list(server.data_dir.glob(".*"))
        filler.unlink()
        assert http.post("/api/v1/sync/upload-request", json={}).status_code == 200
    key = server.data_dir / "secret.key"
    assert (len(key.read_bytes()), key.stat().st_mode & 0o777) == (32, 0o600)
    assert put_up(seller).status_code == 202
    # Members and keys are made here, too, once the secret is known to the database.
    until(lambda: server.run("admin", "key", "create", str(made.id)).code == 0, "a key")


@pytest.mark.night
def test_a_read_only_store_is_told_and_taken_back(server: Server) -> None:
    server.start()
    seller = a_seller(server)
    disk = server.data_dir.parent
    assert put_up(seller).status_code == 202
    # The process that wrote the log holds the disk open for writing.
    subprocess.run(["mount", "--bind", disk, disk], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
        assert_polls_and_reads_live(server, seller)
        assert_unavailable(put_up(seller))
        until(
            lambda: store_state(server) == (503, "unavailable"),
            "readyz to tell the truth",
            RECOVERY_SECONDS,
        )
    finally:
        subprocess.run(["umount", disk], check=True)
    until(lambda: store_state(server) == (200, "ok"), "readyz to tell the truth", RECOVERY_SECONDS)
    assert put_up(seller).status_code == 202
