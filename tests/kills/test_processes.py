"""kill -9 of everything, of the supervisor, of the database, of the web process: accepted is
kept, nothing stays behind. The rarer ones run in `make nightly`.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest
from tests.kills.imports import FILES
from tests.kills.room import Room
from tests.system.inventories import FIRST, SECOND
from tests.system.processes import (
    Seller,
    Server,
    assert_same,
    is_postgres,
    kill,
    processes_of,
    snapshot,
    told,
    until,
)

import schedule
from cardsync.operations.processes.web_process import ENDING_SECONDS

SOAK_ROUNDS = schedule.count("CARDSYNC_SOAK_ROUNDS", 30, 3)

# How many of so many workers outlive a signal that is sent as soon as they are there.
FORKS = """
import multiprocessing, signal, sys, time
from cardsync.operations.processes.web_process import workers_end_at_signals_from_the_start

signal.signal(signal.SIGTERM, lambda *_: None)  # as the server's, which workers inherit
workers_end_at_signals_from_the_start()
lost = 0
for _ in range(int(sys.argv[1])):
    worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(20,))
    worker.start()
    worker.terminate()
    worker.join(5)
    lost += worker.is_alive()
    worker.kill()
print(lost)
"""


@pytest.fixture
def server(room: Room) -> Server:
    """Started again if the test before ended it."""
    server = room.server
    if server.process is None or server.process.poll() is not None:
        server.start()
    return server


def nothing_left(folder: Path, seconds: float = 90) -> None:
    until(
        lambda: not processes_of(folder),
        lambda: f"the end of {told(processes_of(folder))}",
        seconds,
    )


def without_database(server: Server) -> list[psutil.Process]:
    return [process for process in processes_of(server.data_dir) if not is_postgres(process)]


def kill_everything(server: Server) -> None:
    kill(server.supervisor(), *processes_of(server.data_dir))
    assert server.process is not None
    server.process.wait(60)
    nothing_left(server.data_dir)


def restarted_round(server: Server, moment: float) -> None:
    """Accept two uploads, kill all at the moment, start again: each accepted one is there, once."""
    undisturbed, seller = server.seller(), server.seller()
    for data, exported_at in zip(FILES, (FIRST, SECOND), strict=True):
        assert undisturbed.finished(undisturbed.upload(data, exported_at))["state"] == "done"
    accepted = [seller.upload(FILES[0], FIRST), seller.upload(FILES[1], SECOND)]
    time.sleep(moment)  # the moment is what is tested
    kill_everything(server)
    server.start()
    assert [seller.finished(upload_id)["state"] for upload_id in accepted] == ["done", "done"], (
        server.said()[-2000:]
    )
    assert_same(snapshot(seller), snapshot(undisturbed))


def test_everything_killed_during_an_import(server: Server) -> None:
    restarted_round(server, random.uniform(0, 1.0))


@pytest.mark.night
def test_everything_killed_at_many_moments(server: Server) -> None:
    for _ in range(SOAK_ROUNDS):
        restarted_round(server, random.uniform(0, 2.0))


@pytest.mark.night
def test_everything_killed_while_uploads_arrive(server: Server) -> None:
    """An upload that was answered 202 is worked off; any other is there or not, but never half."""
    seller, accepted = server.seller(), []

    def uploads_until_killed(seller: Seller) -> None:
        with suppress(httpx.TransportError):
            while True:
                accepted.append(seller.upload(FILES[len(accepted) % 2]))
                if len(accepted) == 4:
                    kill_everything(server)

    uploads_until_killed(seller)
    assert len(accepted) >= 4
    server.start()
    assert all(seller.finished(upload_id)["state"] == "done" for upload_id in accepted)
    everything = seller.sql("SELECT id, state FROM upload WHERE seller_id = %(seller)s ORDER BY id")
    assert {row["state"] for row in everything} == {"done"}
    runs = seller.sql(
        "SELECT count(*) AS runs, count(DISTINCT upload_id) AS uploads FROM price_run"
        " WHERE seller_id = %(seller)s"
    )
    assert runs == [{"runs": len(everything), "uploads": len(everything)}]
    [state] = snapshot(seller)["state"]
    assert (state["lock_kind"], state["lease_token"], state["uploads_open"]) == (None, None, 0)


@pytest.mark.night
def test_children_of_a_killed_supervisor_end_and_the_next_start_adopts_the_database(
    server: Server,
) -> None:
    seller = server.seller()
    upload_id = seller.upload(FILES[0])
    [postmaster] = [process for process in server.postgres() if "-D" in process.cmdline()]
    kill(server.supervisor())
    assert server.process is not None
    server.process.wait(60)
    until(
        lambda: not without_database(server),
        lambda: f"the end of {told(without_database(server))}",
        90,
    )
    assert postmaster.is_running()
    server.start()
    assert [process for process in server.postgres() if "-D" in process.cmdline()] == [postmaster]
    assert seller.finished(upload_id)["state"] == "done"
    assert server.stop() == 0
    nothing_left(server.data_dir)


@pytest.mark.night
def test_a_start_right_after_a_killed_supervisor(server: Server) -> None:
    """Its children still live for a moment: they hold the address, and one of them imports."""
    seller = server.seller()
    accepted = [seller.upload(data) for data in FILES]
    kill(server.supervisor())
    assert server.process is not None
    server.process.wait(60)
    server.start()
    assert [seller.finished(upload_id)["state"] for upload_id in accepted] == ["done", "done"]
    assert [run["state"] for run in snapshot(seller)["runs"]] == ["completed", "completed"]
    assert server.stop() == 0
    nothing_left(server.data_dir, 10)


@pytest.mark.night
def test_children_of_a_killed_supervisor_that_nobody_reaps_end_too(server: Server) -> None:
    """As in a container whose first process is no init: the dead supervisor stays a zombie."""
    kill(server.supervisor())
    until(
        lambda: not without_database(server),
        lambda: f"the end of {told(without_database(server))}",
        90,
    )


def test_a_killed_web_process_comes_back_and_leaves_no_orphans(server: Server) -> None:
    before = server.children("web")
    assert len(before) == 2  # granian's main process and its worker
    kill(before[0])
    until(
        lambda: not any(alive(process) for process in before),
        lambda: f"the end of {told(before)}",
        90,
    )
    until(
        lambda: len(server.children("web")) == 2 and server.ready(),
        lambda: (
            f"the next web process of {told(server.children('web'))}; the server says:\n"
            f"{server.said()[-3000:]}"
        ),
        90,
    )


def alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.night
def test_a_killed_web_worker_comes_back(server: Server) -> None:
    worker = server.children("web")[1]
    kill(worker)
    until(lambda: not alive(worker), "its end", 90)
    until(server.ready, "the next one", 90)


@pytest.mark.night
def test_a_signal_ends_a_web_process_whose_worker_has_just_begun(server: Server) -> None:
    """It would hold the address against the next start until it is killed for not ending."""
    server.stop()
    server.start()  # its worker may be started again once in a while only
    web, worker = server.children("web")
    worker.terminate()
    until(lambda: not alive(worker), "its end", 90)
    until(lambda: len(server.children("web")) == 2, "the next one", 90)
    web.terminate()
    until(lambda: not alive(web), "the end of the web process", ENDING_SECONDS - 5)
    until(server.ready, "the server", 90)


@pytest.mark.night
@pytest.mark.parametrize("with_its_parent", [True, False])
def test_an_orphaned_web_worker_ends_soon_whatever_it_is_being_sent(
    server: Server, with_its_parent: bool
) -> None:
    """By its parent, or, where that one was killed with the supervisor, by itself."""
    seller = server.seller()
    head = f"POST /api/v1/sync HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer {seller.api_key}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sending:
        sending.sendall(
            f"{head}Content-Type: text/csv\r\nContent-Length: 1000000\r\n\r\nTCGplayer Id".encode()
        )
        main, worker = server.children("web")
        kill(server.supervisor(), *([main] if with_its_parent else []))

        def ended() -> bool:
            with suppress(OSError):
                sending.sendall(b",")
            return not alive(worker)

        until(ended, "its end", ENDING_SECONDS - 5)
    assert server.process is not None
    server.process.wait(60)


@pytest.mark.night
def test_a_signal_right_behind_the_fork_ends_the_worker_too() -> None:
    """The moment between the fork and the worker's own handlers is short: tried often, with the
    hooks of a web process.
    """
    lost = subprocess.run(
        [sys.executable, "-c", FORKS, "20"], capture_output=True, text=True, timeout=120, check=True
    )
    assert lost.stdout.split() == ["0"]


def test_a_killed_database_is_started_again_and_the_import_goes_on(server: Server) -> None:
    seller = server.seller()
    upload_id = seller.upload(FILES[0])
    [postmaster] = [process for process in server.postgres() if "-D" in process.cmdline()]
    kill(postmaster)
    assert seller.finished(upload_id)["state"] == "done"
    until(server.ready, "the server", 90)
    assert seller.get("/api/v1/status").json()["phase"] == "push_queued"
    later = seller.upload(FILES[1])
    assert seller.finished(later)["state"] == "done"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.night)]
)
def test_stopping_leaves_no_process(server: Server, number: int) -> None:
    assert server.stop(number) == 0
    nothing_left(server.data_dir, 10)


@pytest.mark.night
def test_an_impatient_second_signal_leaves_no_process(server: Server) -> None:
    server.seller().upload(FILES[0])
    assert server.process is not None
    for _ in range(5):
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.15)  # a person who presses Ctrl-C again and again
        if server.process.poll() is not None:
            break
    assert server.process.wait(120) == 0, server.said()[-2000:]
    nothing_left(server.data_dir, 10)
