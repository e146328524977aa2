"""Several shops in one agent: each has its own process, a failing one stops no other, and all end
with the agent, however that ends.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.contract.agent_commands import Background, Person, until
from tests.contract.agent_fake_server import KEY, FakeServer, Fault, pricing_csv
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import drop

SHOP = '[shop."{name}"]\nserver = "{url}"\nkey_file = "{key}"\nfolder = "{folder}"\n'


@pytest.fixture
def person(tmp_path: Path, agents: Agents) -> Person:
    return Person(tmp_path / "home", agents)


@pytest.fixture
def other() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


def a_shop(name: str, url: str, folder: Path, key: str = "the.key") -> str:
    (folder / "inbox").mkdir(parents=True, exist_ok=True)
    drop(folder, pricing_csv(20))
    return SHOP.format(name=name, url=url, folder=folder, key=key)


def processes(agent: Background) -> dict[str, psutil.Process]:
    """The shops' processes by the shop's name."""
    children = psutil.Process(agent.process.pid).children()
    commands = [(child.cmdline(), child) for child in children]
    return {words[words.index("--shop") + 1]: child for words, child in commands if words}


def test_each_shop_syncs_and_one_that_fails_stops_no_other(
    person: Person, server: FakeServer, other: FakeServer, tmp_path: Path
) -> None:
    person.writes(
        a_shop("first", server.url, tmp_path / "a")
        + a_shop("no key", server.url, tmp_path / "b", key="absent.key")
        + a_shop("second", other.url, tmp_path / "c")
    )
    with person.keeps_running("run") as agent:
        agent.wait_for("first: sync done")
        agent.wait_for("second: sync done")
        agent.wait_for("the shop no key ended with exit code 2", times=2)
        assert "[no key] the key file cannot be read" in agent.said()
        assert agent.stop() == 0
    assert len(server.contents()) == len(other.contents()) == 1
    assert agent.said().count("stopped") == 2


def test_a_killed_shop_is_started_again(
    person: Person, server: FakeServer, other: FakeServer, tmp_path: Path
) -> None:
    person.writes(
        a_shop("first", server.url, tmp_path / "a") + a_shop("second", other.url, tmp_path / "b")
    )
    with person.keeps_running("run") as agent:
        agent.wait_for("sync done", times=2)
        before = processes(agent)
        before["first"].kill()
        agent.wait_for("the shop first ended with exit code -9")
        until(lambda: len(processes(agent)) == 2, agent.said)
        agent.wait_for("first: cardsync-agent", times=2)
        assert processes(agent)["second"] == before["second"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_shop_outlives_the_agent(
    person: Person, server: FakeServer, tmp_path: Path, number: int
) -> None:
    server.due = False
    person.writes(
        a_shop("first", server.url, tmp_path / "a") + a_shop("second", server.url, tmp_path / "b")
    )
    with person.keeps_running("run") as agent:
        agent.wait_for("no sync is needed now", times=2)
        children = list(processes(agent).values())
        assert len(children) == 2
        agent.stop(number)
        gone, alive = psutil.wait_procs(children, 30)
        assert (len(gone), alive) == (2, [])
    assert agent.said().count("stopped") == 2


def test_once_runs_every_shop_once(
    person: Person, server: FakeServer, other: FakeServer, tmp_path: Path
) -> None:
    person.writes(
        a_shop("first", server.url, tmp_path / "a") + a_shop("second", other.url, tmp_path / "b")
    )
    done = person.runs("run", "--once", "--json-events")
    assert done.code == 0
    events = [json.loads(line) for line in done.out.splitlines()]
    ended = {
        event["shop"]: event["status"] for event in events if event["event"] == "cycle_finished"
    }
    assert ended == {"first": "success", "second": "success"}


def test_once_returns_the_worst_code_of_its_shops(
    person: Person, server: FakeServer, tmp_path: Path
) -> None:
    person.writes(
        a_shop("first", server.url, tmp_path / "a")
        + a_shop("second", server.url, tmp_path / "b", key="absent.key")
    )
    done = person.runs("run", "--once")
    assert done.code == 2
    assert "first: sync done" in done.out


def test_one_shop_of_the_file_runs_in_the_agent_itself(
    person: Person, server: FakeServer, tmp_path: Path
) -> None:
    person.writes(
        a_shop("first", server.url, tmp_path / "a")
        + "quiet_hours = []\n[shop.first.pace]\ninterval = 30\n"
        + a_shop("second", "http://127.0.0.1:9", tmp_path / "b")
    )
    done = person.runs("run", "--once", "--shop", "first")
    assert (done.code, done.err) == (0, "")
    assert "sync done" in done.out
    assert "first:" not in done.out
    log = (tmp_path / "a" / ".cardsync-agent" / "agent.log").read_text()
    assert "sync done" in log
    assert KEY not in log


def test_other_commands_find_their_shop_in_the_settings(
    person: Person, server: FakeServer, other: FakeServer, tmp_path: Path
) -> None:
    person.writes(
        a_shop("first", server.url, tmp_path / "a") + a_shop("second", other.url, tmp_path / "b")
    )
    person.runs("run", "--once")
    [prices] = (tmp_path / "b" / "outbox").iterdir()
    other.faults = [Fault("repricing_events", 200)]
    said = person.runs("imported", str(prices))
    assert (said.code, said.err) == (0, "")
    assert "repricing_events" in other.calls[-1]
    assert "repricing_events" not in server.calls[-1]
    assert person.runs("cards", "--shop", "first").code == 0
    for words in (["cards"], ["mcp"]):
        ambiguous = person.runs(*words)
        assert ambiguous.code == 2
        assert ambiguous.err.endswith("name the shop by --shop: first, second\n")


@pytest.mark.parametrize(
    ("words", "settings", "says"),
    [
        (["run"], None, "there is no settings file"),
        (["run", "--shop", "x"], "", "has no shop 'x'; it has first"),
        (["run", "--server", "http://x"], "", "give both --server and --folder"),
        (["run", "--folder", "x"], "", "give both --server and --folder"),
        (["run", "--key", "x"], "", "a settings file names its own"),
        (["run"], 'adapter = "browser"\n', "needs a table [shop.first.browser]"),
        (["pause", "tomorrow"], "", "a pause is 1h, 4h, 24h or on"),
        (["status", "--folder", "."], "", "no sync app has worked in"),
        (["logs", "-f"], "[shop.b]\nserver = 'http://x'\nfolder = 'b'\n", "name it with --shop"),
        (["setup"], "", "needs a terminal"),
    ],
)
def test_a_mistake_is_one_sentence(
    person: Person, tmp_path: Path, words: list[str], settings: str | None, says: str
) -> None:
    if settings is not None:
        person.writes(a_shop("first", "http://127.0.0.1:9", tmp_path / "a") + settings)
    said = person.runs(*words)
    assert said.code == 2
    assert says in said.err
    assert len(said.err.splitlines()) == 1


def test_a_second_agent_is_refused_while_status_looks(
    person: Person, server: FakeServer, tmp_path: Path
) -> None:
    server.due = False
    person.writes(a_shop("first", server.url, tmp_path / "a"))
    with person.keeps_running("run") as agent:
        agent.wait_for("no sync is needed now")
        said = person.runs("run", "--once")
        assert said.code == 1
        assert "Another cardsync-agent already works in" in said.err
        status = json.loads(person.runs("status", "--json").out)[0]
        assert (status["runs"], status["state"]) == (True, "waiting")
        assert status["status"]["pid"] == agent.process.pid
        os.kill(agent.process.pid, signal.SIGKILL)
        agent.process.wait()
    assert "not running" in person.runs("status").out
