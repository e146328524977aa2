"""A paused agent, or one in its quiet hours: it stays in contact, starts nothing, and loses
nothing.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.agent_commands import Person, until
from tests.contract.agent_fake_server import FakeServer, pricing_csv
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import drop

from cardsync_agent import clock

SHOP = '[shop.cards]\nserver = "{}"\nkey_file = "the.key"\nfolder = "{}"\n'


@pytest.fixture
def person(tmp_path: Path, agents: Agents, server: FakeServer, folder: Path) -> Person:
    made = Person(tmp_path / "home", agents)
    made.writes(SHOP.format(server.url, folder))
    return made


def until_polled(server: FakeServer) -> None:
    """Two more heartbeats: the round between them has ended."""
    before = len(server.heartbeats)
    until(lambda: len(server.heartbeats) >= before + 2, lambda: server.calls[-5:])


def test_a_paused_agent_sends_heartbeats_and_starts_nothing(
    person: Person, server: FakeServer
) -> None:
    server.approved = True
    server.add_task("refresh_orders")
    paused = person.runs("pause", "4h")
    assert paused.code == 0
    assert paused.out.startswith("cards: paused until ")
    with person.keeps_running("run") as agent:
        agent.wait_for("paused until")
        until_polled(server)
        assert {call.split("/")[-1] for call in server.calls} == {"heartbeat"}
        assert "paused until" in person.runs("status").out
        assert agent.stop() == 0
    # The pause outlives the agent.
    with person.keeps_running("run") as agent:
        agent.wait_for("paused until")
        assert agent.said().count("paused until") == 1
        assert person.runs("resume").out == "cards: goes on\n"
        agent.wait_for("sync done")
        agent.wait_for("the task refresh orders")
    assert person.runs("resume").out == "cards: was not paused\n"


def test_a_running_step_ends_and_the_rest_of_the_sync_waits(
    person: Person, server: FakeServer, folder: Path
) -> None:
    server.upload_states = ["processing"]
    with person.keeps_running("run") as agent:
        agent.wait_for("the server is working on it")
        assert "await repricing" in person.runs("status").out
        person.runs("pause", "on")
        assert "then paused until you say so" in person.runs("status").out
        server.uploads[1]["states"] = ["done"]
        agent.wait_for("paused until you say so")
        until_polled(server)
        assert server.logs == []
        assert "GET /api/v1/export/price-updates" not in server.calls
        agent.stop(signal.SIGKILL)
    assert "the sync that it began: pricing" in person.runs("status").out
    with person.keeps_running("run") as agent:
        agent.wait_for("paused until you say so")
        person.runs("resume")
        agent.wait_for("sync done")
    assert len(server.uploads) == len(server.cycles()) == 1
    assert len(list((folder / "outbox").iterdir())) == 1


def test_quiet_hours_hold_back_what_is_due(
    person: Person, server: FakeServer, folder: Path
) -> None:
    wall = clock.local_wall(clock.now())
    span = f"{wall - timedelta(hours=1):%H:%M}-{wall + timedelta(hours=2):%H:%M}"
    person.writes(SHOP.format(server.url, folder) + f'quiet_hours = "{span}"\n')
    once = person.runs("run", "--once", "--json-events")
    assert once.code == 0
    [event] = [
        json.loads(line) for line in once.out.splitlines() if json.loads(line)["event"] == "paused"
    ]
    assert event["reason"] == "quiet_hours"
    assert event["until"] > clock.rfc3339(clock.now() + timedelta(hours=1))
    assert server.cycles() == {}
    assert "quiet hours until" in person.runs("resume").out


def test_without_a_settings_file_the_folder_names_the_agent(
    person: Person, server: FakeServer, folder: Path
) -> None:
    drop(folder, pricing_csv(10))
    by_options = ["run", "--server", server.url, "--key", "csk_test", "--folder", str(folder)]
    assert "sync done" in person.runs(*by_options, "--once").out
    assert person.runs("pause", "1h", "--folder", str(folder)).code == 0
    assert "paused until" in person.runs(*by_options, "--once").out
    logs = person.runs("logs", "--folder", str(folder), "-n", "1")
    assert "paused until" in logs.out
    assert len(logs.out.splitlines()) == 1


def test_an_agent_without_a_console_works(person: Person, server: FakeServer) -> None:
    """As Windows starts it at the sign-in: there is no output at all."""
    program = (
        "import sys; sys.stdout = sys.stderr = None; from cardsync_agent.cli import main;"
        " sys.exit(main(['run', '--once']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=person.environ(), check=False, timeout=60
    )
    assert ended.returncode == 0
    assert "sync done" in person.runs("logs").out


def test_the_log_is_followed(person: Person, server: FakeServer) -> None:
    server.due = False
    with person.keeps_running("run") as agent:
        agent.wait_for("no sync is needed now")
        with person.keeps_running("logs", "-f", "-n", "1") as logs:
            logs.wait_for("waiting: no sync is needed now")
            server.requested = True
            logs.wait_for("sync done")
            assert logs.stop(signal.SIGINT) == 0
