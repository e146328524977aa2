"""`cardsync serve` and the admin commands as an operator meets them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.system.inventories import inventory
from tests.system.processes import Server, a_folder, free_port, processes_of, told, until


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_folder() as path:
        yield path


@pytest.mark.night
def test_admin_commands_while_it_runs(server: Server) -> None:
    seller = server.admin_seller("running@example.invalid", "--plan", "founder", "--line", "magic")
    assert seller.get("/api/v1/status").json()["sync_mode"] == "full"
    changed = server.run(
        "admin", "seller", "set", str(seller.id), "sync_mode=read_only", "write_consent=false"
    )
    assert (changed.code, changed.out.strip()) == (
        0,
        f"seller {seller.id}: sync_mode=read_only, write_consent=False",
    )
    assert seller.get("/api/v1/status").json()["sync_mode"] == "read_only"
    with seller.http() as http:
        assert http.post("/api/v1/heartbeat", json={}).json()["sync_mode"] == "read_only"
    [key] = json.loads(server.run("admin", "key", "list", str(seller.id), "--json").out)["keys"]
    assert server.run("admin", "key", "revoke", str(key["key_id"])).code == 0
    for _ in range(20):  # both web processes know it
        assert seller.get("/api/v1/status").status_code in (401, 403)


@pytest.mark.night
def test_web_processes_share_the_address(server: Server) -> None:
    assert len(server.children("web")) == 3  # granian's main process and two workers
    seller = server.seller()
    answers = [seller.get("/api/v1/status").status_code for _ in range(40)]  # a connection each
    assert answers == [200] * 40
    upload_id = seller.upload(inventory(300))
    assert seller.finished(upload_id)["state"] == "done"


def test_idle_connections_keep_nobody_out(server: Server) -> None:
    """Agents keep their connections open between polls."""
    with ExitStack() as idle:
        agents = [
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            for _ in range(600)
        ]
        for agent in agents:
            agent.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # Nobody waits for the answer of another one.
        assert {agent.recv(12) for agent in agents} == {b"HTTP/1.1 200"}


def test_metrics_are_on_their_own_port_only(server: Server) -> None:
    httpx.get(f"{server.url}/healthz")
    metrics = httpx.get(f"http://127.0.0.1:{server.metrics_port}/metrics")
    assert metrics.status_code == 200
    assert 'cardsync_requests_total{method="GET",route="/readyz",status="200"}' in metrics.text
    public = httpx.get(f"{server.url}/metrics")
    assert public.status_code == 404
    assert "cardsync_requests_total" not in public.text


def test_the_workers_imports_are_counted(server: Server) -> None:
    seller = server.seller()
    seller.finished(seller.upload(inventory(10)))
    text = httpx.get(f"http://127.0.0.1:{server.metrics_port}/metrics").text
    assert "cardsync_upload_seconds_count" in text or "cardsync_uploads_finished_total" in text


def test_readyz_says_what_it_looked_at(server: Server) -> None:
    checks = httpx.get(f"{server.url}/readyz").json()["checks"]
    assert checks == dict.fromkeys(
        ("database", "role", "migrations", "queue", "object_store"), "ok"
    )


def test_a_second_serve_on_the_same_data_folder_says_so_and_ends(server: Server) -> None:
    """Also on an address of its own; the first one goes on, its metrics too."""
    port = free_port()
    ran = server.run("serve", "--port", str(port))
    assert ran.code == 1, ran.err
    assert_last_line_is_a_sentence(ran.err, str(server.data_dir))
    assert "Traceback" not in ran.err
    assert server.ready()
    metrics = httpx.get(f"http://127.0.0.1:{server.metrics_port}/metrics")
    assert "cardsync_requests_total" in metrics.text


def test_what_runs_is_for_nobody_else_to_look_into(server: Server) -> None:
    assert (server.data_dir / "run").stat().st_mode & 0o777 == 0o700
    logs = [*server.data_dir.rglob("start.log"), *server.data_dir.rglob("initdb.log")]
    if not logs:
        pytest.skip("the database is elsewhere")
    assert {log.stat().st_mode & 0o777 for log in logs} == {0o600}


def test_a_client_that_sends_all_before_it_reads_sees_that_it_was_too_much(server: Server) -> None:
    seller = server.seller()
    size = 40_000_000
    head = f"POST /api/v1/sync HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer {seller.api_key}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(f"{head}Content-Type: text/csv\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(size // 1_000_000):
            client.sendall(bytes(1_000_000))
        answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413"), answer
    assert b"payload_too_large" in answer


@pytest.mark.night
def test_an_address_taken_by_another_program_is_one_sentence(folder: Path) -> None:
    server = Server(folder)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", server.port))
        taken.listen()
        ran = server.run("serve")
    assert ran.code == 1
    assert_last_line_is_a_sentence(ran.err, str(server.port))
    assert "Traceback" not in ran.err
    assert not processes_of(server.data_dir), told(processes_of(server.data_dir))


def test_an_address_taken_by_another_cardsync_is_one_sentence(server: Server, folder: Path) -> None:
    """The other one answers /readyz in our place."""
    second = Server(folder)
    ran = second.run("serve", "--port", str(server.port))
    assert ran.code == 1, ran.err
    assert_last_line_is_a_sentence(ran.err, str(server.port))
    assert "Traceback" not in ran.err
    assert not processes_of(second.data_dir), told(processes_of(second.data_dir))
    assert server.ready()


def assert_last_line_is_a_sentence(text: str, part: str) -> None:
    last = text.strip().splitlines()[-1]
    assert last.startswith("Error: "), text
    assert part in last, text


def test_sigterm_lets_the_import_finish_or_the_next_start_does_and_the_data_is_there(
    folder: Path,
) -> None:
    with Server(folder, SLAB_ROWS="40") as server:
        seller = server.seller()
        accepted = [seller.upload(inventory(400, edition)) for edition in (1, 2)]
        until(lambda: seller.report(accepted[0])["state"] != "queued", "the import")
        assert server.stop() == 0, server.said()
        assert not processes_of(server.data_dir), told(processes_of(server.data_dir))
        assert "Traceback" not in server.said(), server.said()
        # The database is off: the admin commands start it for themselves.
        shown = server.run("admin", "seller", "show", str(seller.id), "--json")
        assert shown.code == 0, shown.err
        assert json.loads(shown.out)["plan"] == "founder"
        assert not processes_of(server.data_dir), told(processes_of(server.data_dir))
        server.start()
        assert [seller.finished(upload_id)["state"] for upload_id in accepted] == ["done", "done"]
        [row] = seller.sql("SELECT count(*) AS n FROM price_run WHERE seller_id = %(seller)s")
        assert row["n"] == 2


@pytest.mark.night
def test_a_slow_upload_outlives_the_signal(folder: Path) -> None:
    """A body that is on its way when SIGTERM comes is answered, or its connection is cut: never a
    202 that is lost.
    """
    with Server(folder, SLAB_ROWS="100") as server:
        seller = server.seller()
        data = inventory(2000)

        def body() -> Iterator[bytes]:
            for start in range(0, len(data), 100_000):
                yield data[start : start + 100_000]
                if start == 0:
                    assert server.process is not None
                    server.process.send_signal(signal.SIGTERM)

        accepted = None
        with seller.http() as http:
            try:
                answer = http.post(
                    "/api/v1/sync", content=body(), headers={"Content-Type": "text/csv"}
                )
                accepted = answer.json()["upload_id"] if answer.status_code == 202 else None
            except httpx.TransportError:
                pass
        assert server.process is not None
        assert server.process.wait(120) == 0
        server.start()
        ids = [
            row["id"] for row in seller.sql("SELECT id FROM upload WHERE seller_id = %(seller)s")
        ]
        assert ids == ([accepted] if accepted else ids[:1])
        assert all(seller.finished(upload_id)["state"] == "done" for upload_id in ids)


COMMANDS = (["serve"], ["admin", "seller", "show", "1"], ["demo", "--exit"], ["worker"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_folder_that_cannot_be_written_is_one_sentence(folder: Path, command: list[str]) -> None:
    server = Server(folder)
    server.data_dir.mkdir(mode=0o555)
    assert_refused(server, command)


@pytest.mark.first(1)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_folder_that_cannot_be_made_is_one_sentence(folder: Path, command: list[str]) -> None:
    (folder / "file").touch()
    assert_refused(Server(folder, folder / "file" / "data"), command)


def assert_refused(server: Server, command: list[str]) -> None:
    ran = server.run(*command)
    assert ran.code == 1, ran.err
    assert "Traceback" not in ran.err
    assert_last_line_is_a_sentence(ran.err, str(server.data_dir))


@pytest.mark.first(1)
@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_configuration_file_that_cannot_be_read_is_one_sentence(
    folder: Path, command: str
) -> None:
    """Its settings would silently not count, and another database be begun."""
    ran = Server(folder, CONFIG=str(folder / "missing.toml")).run(command)
    assert ran.code == 1
    assert_last_line_is_a_sentence(ran.err, "CARDSYNC_CONFIG")
    (folder / "bad.toml").write_text("bind: 1")
    ran = Server(folder, CONFIG=str(folder / "bad.toml")).run(command)
    assert ran.code == 1
    assert_last_line_is_a_sentence(ran.err, "no TOML")


@pytest.mark.night
def test_a_worker_of_a_given_database_says_what_is_wrong_in_one_sentence(folder: Path) -> None:
    ran = Server(folder, DATABASE_URL="postgresql://nobody@127.0.0.1:1/x", BIND="nowhere").run(
        "worker"
    )
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert_last_line_is_a_sentence(ran.err, "CARDSYNC_BIND")


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "command",
    [["serve"], ["migrate"], ["admin", "seller", "show", "1"]],
    ids=lambda one: one[0],
)
def test_a_given_database_that_is_away_is_one_sentence(folder: Path, command: list[str]) -> None:
    ran = Server(folder, DATABASE_URL="postgresql://nobody@127.0.0.1:1/x").run(*command)
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert_last_line_is_a_sentence(ran.err, "CARDSYNC_DATABASE_URL")


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("name", "value"),
    [("WEB_WORKERS", "none"), ("BIND", ""), ("METRICS_BIND", "nowhere"), ("DEFAULT_PLAN", "gold")],
)
def test_a_setting_that_is_wrong_is_one_sentence(folder: Path, name: str, value: str) -> None:
    ran = Server(folder, **{name: value}).run("serve")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert_last_line_is_a_sentence(ran.err, f"CARDSYNC_{name}")


@pytest.mark.night
def test_the_link_of_the_first_run_is_printed_and_printed_again(folder: Path) -> None:
    with Server(folder) as server:
        where = ("--port", str(server.port))
        again = server.run("set-up-link", *where)
        assert again.code == 0, again.err
        link = again.out.strip()
        until(lambda: f"set it up at {link}" in server.said(), server.said)
        assert httpx.get(link).status_code == 200
        assert httpx.get(f"{server.url}/set-up").status_code == 403
        server.seller()
        told = server.run("set-up-link", *where)
        assert (told.code, told.out) == (1, "")
        assert_last_line_is_a_sentence(told.err, "sign-in")


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("terminal", "display", "opened"), [(True, ":0", True), (True, "", False), (False, ":0", False)]
)
def test_a_first_run_opens_a_browser_where_a_person_can_see_one(
    folder: Path, terminal: bool, display: str, opened: bool
) -> None:
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{folder}/opened.part"\n'
                       f'mv "{folder}/opened.part" "{folder}/opened"\n')  # fmt: skip
    browser.chmod(0o755)
    program = "from cardsync.operations.processes import first_browser as f; f.show('http://localhost/set-up')"
    ours, theirs = os.openpty()
    env = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    env |= {"DISPLAY": display, "BROWSER": f"{browser} %s &"}
    subprocess.run(
        [sys.executable, "-c", program], env=env, check=True, timeout=60,
        stderr=theirs if terminal else subprocess.DEVNULL,
    )  # fmt: skip
    if opened:
        until((folder / "opened").exists, "the browser")
        assert (folder / "opened").read_text() == "http://localhost/set-up"
    else:
        assert not (folder / "opened").exists()
    os.close(ours)
    os.close(theirs)
