"""The agent as people run it: the loop over restarts, signals and refusals, and the command
line's mistakes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contract.agent_fake_server import KEY, FakeServer, Fault, pricing_csv
from tests.contract.agent_process import FAST, Agents
from tests.contract.agent_runs import drop

# The loop, as a program of its own


class Running:
    """`cardsync-agent run` without --once."""

    def __init__(self, server: FakeServer, folder: Path, **pace: str) -> None:
        pace_of = {**FAST, "INTERVAL": "0.05", "CONTACT": "30", **pace}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "cardsync_agent.cli",
                "run",
                "--server",
                server.url,
                "--folder",
                str(folder),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ
            | {"CARDSYNC_AGENT_KEY": KEY}
            | {f"CARDSYNC_AGENT_PACE_{name}": value for name, value in pace_of.items()},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def wait_for(self, words: str, times: int = 1) -> None:
        ends = time.monotonic() + 90
        while sum(words in line for line in self.lines) < times:
            assert time.monotonic() < ends, self.lines
            time.sleep(0.01)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self.close()
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self._reader.join()
        assert self.process.stdout
        self.process.stdout.close()


Run = Callable[..., Running]


@pytest.fixture
def run(server: FakeServer, folder: Path) -> Iterator[Run]:
    """Starts agents, and leaves none behind."""
    started: list[Running] = []

    def start(**pace: str) -> Running:
        started.append(Running(server, folder, **pace))
        return started[-1]

    yield start
    for agent in started:
        agent.close()


def test_the_loop_survives_a_restart_of_the_server_and_ends_on_a_signal(
    run: Run, server: FakeServer, folder: Path
) -> None:
    server.due = False
    agent = run()
    agent.wait_for("waiting: no sync is needed now")
    server.down()
    agent.wait_for(f"127.0.0.1:{server.port} cannot be reached")
    server.due = True
    server.up()
    agent.wait_for("sync done")
    drop(folder, pricing_csv(300))
    server.requested = True
    agent.wait_for("sync done", times=2)
    assert agent.stop() == 0
    assert [len(content) for content in server.contents()] == [
        len(pricing_csv(200)),
        len(pricing_csv(300)),
    ]
    assert len([line for line in agent.lines if "no sync is needed" in line]) <= 3


def test_a_stopped_agent_goes_on_later(run: Run, server: FakeServer, folder: Path) -> None:
    server.upload_states = ["processing"]
    agent = run()
    agent.wait_for("the server is working on it")
    assert agent.stop(signal.SIGINT) == 0
    server.uploads[1]["states"] = ["done"]
    again = run()
    again.wait_for("sync done")
    assert again.stop() == 0
    assert len(server.uploads) == len(server.cycles()) == 1


@pytest.mark.day
def test_a_cycle_that_never_ends_is_abandoned_and_reported(
    run: Run, server: FakeServer, folder: Path
) -> None:
    server.upload_states = ["processing"]
    agent = run(CYCLE_EXPIRES="0.5")
    agent.wait_for("abandoned")
    agent.wait_for("sync failed")
    agent.stop()
    assert [log["status"] for log in server.cycles().values()] == ["failed"]


def test_a_refused_key_is_tried_again_slowly(run: Run, server: FakeServer, folder: Path) -> None:
    server.faults = [Fault("heartbeat", 401, times=3, code="unauthorized")]
    agent = run()
    agent.wait_for("sync done")
    agent.stop()
    assert len([line for line in agent.lines if "refuses" in line]) == 1


# The command line


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["--server", "cards.example", "--key", KEY, "--folder", "{}"],
            2,
            "--server must be an address",
        ),
        (
            ["--server", "http://x:abc", "--key", KEY, "--folder", "{}"],
            2,
            "--server must be an address",
        ),
        (
            ["--server", "http://[::1", "--key", KEY, "--folder", "{}"],
            2,
            "--server must be an address",
        ),
        (
            ["--server", "http:///path", "--key", KEY, "--folder", "{}"],
            2,
            "--server must be an address",
        ),
        (["--server", "http://x", "--folder", "{}"], 2, "no API key"),
        (
            ["--server", "http://x", "--key", "two words", "--folder", "{}"],
            2,
            "characters that no key has",
        ),
        (
            ["--server", "http://x", "--key-file", "{}/none", "--folder", "{}"],
            2,
            "key file cannot be read",
        ),
        (
            ["--server", "http://x", "--key", KEY, "--folder", "{}", "--request"],
            2,
            "--request needs --once",
        ),
        (
            ["--server", "http://x", "--key", KEY, "--folder", "{}/inbox/export.csv"],
            1,
            "cannot use the folder",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    agents: Agents, folder: Path, arguments: list[str], code: int, words: str
) -> None:
    ended = agents.run(*(argument.format(folder) for argument in arguments))
    assert ended.returncode == code
    assert words in ended.errors
    assert len(ended.errors.splitlines()) == 1


def test_the_key_may_stand_in_a_file(agents: Agents, server: FakeServer, folder: Path) -> None:
    (folder / "key").write_text(f"{KEY}\n")
    ended = agents.run(
        "--server",
        server.url,
        "--key-file",
        str(folder / "key"),
        "--folder",
        str(folder),
        "--once",
        "--quiet",
    )
    assert ended.returncode == 0
    assert KEY not in (folder / ".cardsync-agent" / "state.json").read_text()
