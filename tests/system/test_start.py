"""The start of `cardsync serve`: a process killed in it is started again, and given up at last."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.system.processes import Server, a_folder, kill, processes_of, told, until

pytestmark = pytest.mark.day


@pytest.fixture
def server() -> Iterator[Server]:
    """One that begins its start, and has yet to get ready."""
    with a_folder() as folder:
        server = Server(folder)
        server.begin()
        try:
            yield server
        finally:
            with suppress(Exception):
                server.stop()


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["web", "worker"])
def test_a_process_that_is_killed_during_the_start_is_started_again(
    server: Server, kind: str
) -> None:
    [first] = until(lambda: server.children(kind)[:1], f"the {kind} process")
    kill(first)
    until(lambda: server.ready() and "cardsync serves " in server.said(), server.said)
    assert [one.pid for one in server.children(kind)[:1]] != [first.pid]
    assert server.stop() == 0, server.said()


@pytest.mark.night
def test_a_process_that_dies_again_and_again_during_the_start_is_given_up_and_why_is_said(
    server: Server,
) -> None:
    assert server.process is not None
    deadline = time.monotonic() + 90
    while server.process.poll() is None and time.monotonic() < deadline:
        kill(*server.children("web"))
        time.sleep(0.05)
    assert server.process.poll() == 1, server.said()
    last = server.said().strip().splitlines()[-1]
    assert last.startswith("Error: "), server.said()
    assert "the web process keeps dying" in last
    assert "SIGKILL" in last
    assert not processes_of(server.data_dir), told(processes_of(server.data_dir))
