"""Setting up a shop, at a terminal and without one, and `doctor` and `service` afterwards."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from tests.contract.agent_commands import Person
from tests.contract.agent_fake_server import KEY, FakeServer, Fault, pricing_csv
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import drop

from cardsync_agent.commands import checks
from cardsync_agent.shops.settings_file import settings_of as settings_of_text

# What systemd's command answers is written by the tests: 0, or the words of its refusal.
SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$HOME/systemctl.calls"
case "$*" in *is-active*) test -e "$HOME/active"; exit $?;; esac
case "$*" in *restart*) touch "$HOME/active";; *disable*) rm -f "$HOME/active";; esac
"""
NO_SYSTEMD = "#!/bin/sh\necho Failed to connect to bus >&2\nexit 1\n"


@pytest.fixture
def person(tmp_path: Path, agents: Agents) -> Person:
    made = Person(tmp_path / "home", agents)
    has(made, NO_SYSTEMD)
    return made


def has(person: Person, systemctl: str) -> None:
    program = person.bin / "systemctl"
    program.write_text(systemctl)
    program.chmod(0o755)


def inbox(person: Person, name: str = "cards") -> Path:
    folder = person.home / name
    (folder / "inbox").mkdir(parents=True)
    drop(folder, pricing_csv(200))
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Questions at a terminal


def test_a_person_answers_questions(person: Person, server: FakeServer) -> None:
    folder = inbox(person)
    answers = ["cards.example", server.url, "csk_wrong", "", KEY, "", "f", "22:00-7:00", "y", "n"]
    said = person.answers(answers, "setup")
    assert said.code == 0, said.out
    assert "the server's address must be an address like" in said.out
    assert "the server does not accept the key" in said.out
    assert KEY not in said.out
    assert "Found 2 cards of your inventory." in said.out
    assert "3 price changes wait" in said.out
    assert "Nothing was changed at your marketplace." in said.out
    key_file = person.config.with_name("cards.key")
    assert (mode(person.config), mode(key_file)) == (0o600, 0o600)
    assert key_file.read_text() == f"{KEY}\n"
    settings = person.config.read_text()
    assert KEY not in settings
    assert 'quiet_hours = ["22:00-07:00"]' in settings
    assert not (folder / "outbox").exists()
    assert KEY not in (folder / ".cardsync-agent" / "agent.log").read_text()


@pytest.mark.first(1)
@pytest.mark.parametrize("answered", range(6))
def test_ctrl_c_leaves_nothing(person: Person, server: FakeServer, answered: int) -> None:
    answers = [server.url, KEY, "", "f", "", "y"][:answered]
    said = person.answers([*answers, "^C"], "setup")
    assert said.code == 1
    assert said.out.endswith("Nothing was changed.\n")
    assert not person.config.parent.exists()
    assert not (person.home / "cards").exists()


def test_a_second_shop_joins_and_the_first_can_be_changed(
    person: Person, server: FakeServer
) -> None:
    person.writes(
        f"# my shops\n[shop.first]\nserver = '{server.url}'\nkey_file = 'the.key'\n"
        f"folder = '{person.home / 'first'}'\n"
    )
    # The name, server, key, a taken folder, the folder, quiet hours, agreement, no service.
    taken = str(person.home / "first")
    answers = ["second", server.url, KEY, taken, "", "", "y", "n"]
    by_folder = ["setup", "--no-dry-run", "--adapter", "folder"]
    added = person.answers(answers, *by_folder)
    assert added.code == 0, added.out
    assert "is the folder of the shop first: take another" in added.out
    # All defaults are the present values, the key's file too.
    changed = person.answers(["first", "", "", "", "1:00-2:00", "y", "n"], *by_folder)
    assert changed.code == 0, changed.out
    settings = person.config.read_text()
    assert settings.startswith("# my shops\n")
    assert settings.count("[shop.") == 2
    assert 'key_file = "the.key"' in settings
    assert 'quiet_hours = ["01:00-02:00"]' in settings
    doctor = person.runs("doctor")
    assert doctor.out.count("ok    key          the server accepts it") == 2


# Options without a terminal


def test_setup_by_options_changes_nothing_at_the_marketplace(
    person: Person, server: FakeServer
) -> None:
    """Whatever waits is left for the agent's first run: approved uploads, tasks, rollbacks."""
    folder = inbox(person)
    (person.home / "key").write_text(KEY)
    (person.home / "key").chmod(0o600)
    server.approved, server.export_kind, server.etag = True, "rollback", '"1"'
    server.add_task("apply_price_updates")
    words = ["--server", server.url, "--key-file", str(person.home / "key"), "--yes"]
    said = person.runs("setup", *words, "--folder", str(folder), "--adapter", "folder")
    assert said.code == 0, said.err
    assert "3 price changes wait" in said.out
    assert not (folder / "outbox").exists()
    assert server.approved
    assert server.outcomes == []
    assert f'key_file = "{person.home / "key"}"' in person.config.read_text()
    # The first run of its own places what the dry run only saw.
    server.requested = True
    assert person.runs("run", "--once").code == 0
    assert list((folder / "outbox").iterdir()) != []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--key", "csk_wrong"], "the server does not accept the key (unauthorized)"),
        ([], "no API key: make one in the dashboard"),
        (["--key", KEY, "--folder", "/dev/null/x"], "no folder that you can write"),
        (["--key", KEY, "--quiet-hours", "late"], "written like 22:00-07:00"),
        (["--key", KEY, "--shop", " "], "a shop's name has"),
    ],
)
def test_what_does_not_fit_writes_nothing(
    person: Person, server: FakeServer, words: list[str], says: str
) -> None:
    said = person.runs("setup", "--yes", "--server", server.url, *words)
    assert said.code == 2
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert not person.config.exists()


def test_an_unreachable_server_is_said(person: Person) -> None:
    said = person.runs("setup", "--yes", "--server", "http://127.0.0.1:9", "--key", KEY)
    assert said.code == 2
    assert "127.0.0.1:9 cannot be reached" in said.err


@pytest.mark.night
def test_setup_beside_a_running_agent_only_writes(person: Person, server: FakeServer) -> None:
    server.due = False
    settings_of(person, server)
    words = ["setup", "--yes", "--adapter", "folder", "--quiet-hours", "1:00-1:05"]
    with person.keeps_running("run") as agent:
        agent.wait_for("no sync is needed now")
        said = person.runs(*words)
        assert said.code == 0, said.err
        assert "start it again, so that it reads the settings" in said.out
    assert 'quiet_hours = ["01:00-01:05"]' in person.config.read_text()


# doctor


def settings_of(person: Person, server: FakeServer, more: str = "") -> None:
    folder = inbox(person)
    person.writes(
        f"[shop.cards]\nserver = '{server.url}'\nkey_file = 'the.key'\nfolder = '{folder}'\n{more}"
    )


def test_doctor_finds_nothing_to_mend(person: Person, server: FakeServer) -> None:
    settings_of(person, server)
    said = person.runs("doctor")
    assert (said.code, said.err) == (0, "")
    assert {line.split()[0] for line in said.out.splitlines() if " " in line} == {"ok", "note"}
    for words in ("answers in", "agrees with the server's", "accepts it", "can be written", "free"):
        assert words in said.out
    assert "note  running" in said.out


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        ("server", "cannot be reached"),
        ("key", "the server does not accept the key"),
        ("open key", "others may read it: `chmod 600"),
        ("no key", "the key file cannot be read"),
        ("clock", "5 min ahead of the server's"),
        ("folder", "is not there: make it"),
        ("settings", "does not fit"),
        ("trouble", "answers 503"),
    ],
)
def test_doctor_says_what_to_mend(
    person: Person, server: FakeServer, breaks: str, says: str
) -> None:
    settings_of(person, server)
    key = person.config.with_name("the.key")
    if breaks == "server":
        server.down()
    elif breaks == "key":
        key.write_text("csk_wrong")
    elif breaks == "open key":
        key.chmod(0o644)
    elif breaks == "no key":
        key.unlink()
    elif breaks == "clock":
        late = formatdate(time.time() - 300, usegmt=True)
        server.faults = [Fault("healthz", 200, body={"status": "ok"}, headers={"Date": late})]
    elif breaks == "folder":
        (person.home / "cards").rename(person.home / "elsewhere")
    elif breaks == "settings":
        person.config.write_text("[shop.cards]\nserver = 3\n")
    elif breaks == "trouble":
        server.faults = [Fault("healthz", 503)]
    said = person.runs("doctor")
    assert said.code == 1
    [line] = [line for line in said.out.splitlines() if line.startswith("look")]
    assert says in line
    assert KEY not in said.out + said.err
    assert "csk_wrong" not in said.out + said.err


def browser_looks(tmp_path: Path, **status: str | None) -> dict[str, list[str]]:
    """The lines of `doctor` about a shop with a browser, by their names."""
    text = (
        "[shop.cards]\nserver = 'http://127.0.0.1:9'\nkey = 'csk_a'\nfolder = '.'\n"
        "adapter = 'browser'\nbrowser = { marketplace = 'tcgplayer' }\n"
    )
    [shop] = settings_of_text(text, tmp_path / "agent.toml").shops
    shop.home.mkdir(exist_ok=True)
    if status:
        (shop.home / "status.json").write_text(json.dumps(status))
    lines: dict[str, list[str]] = {}
    for one in checks.of_shop(shop):
        lines.setdefault(one.name, []).append(f"{one.word}: {one.text}")
    return lines


def test_doctor_names_all_that_nobody_has_shown_the_agent(tmp_path: Path) -> None:
    workflows, *others = browser_looks(tmp_path)["pack"]
    assert workflows.startswith("look: export_inventory, stage_prices")
    turns = [("look", "sign_in"), ("note", "second_factor"), ("note", "captcha")]
    for line, (word, kind) in zip(others, turns, strict=False):
        assert line.startswith(f"{word}: the page of the {kind.replace('_', ' ')} is not known")
        assert f"--your-turn {kind}`" in line
    [masks] = others[len(turns) :]
    assert masks.startswith("look: buyer_names, buyer_addresses: run")


def test_doctor_says_from_when_it_knows_of_the_session(tmp_path: Path) -> None:
    assert browser_looks(tmp_path)["session"] == ["note: not known before the first run"]
    [begun] = browser_looks(tmp_path, state="working")["session"]
    assert begun == "note: not known before the first sync has ended"
    [known] = browser_looks(tmp_path, last_end_at="2026-11-21T08:00:00Z")["session"]
    assert re.match(r"ok: no sign-in is asked for, as of 2026-11-2\d \d\d:\d\d:\d\d$", known)


def test_doctor_looks_for_the_part_that_drives_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "playwright", None)
    [told] = browser_looks(tmp_path)["browser"]
    assert told.startswith("look: the sync app's part for it is missing: install")


# service


def test_a_service_is_installed_once_and_removed_without_a_trace(
    person: Person, server: FakeServer
) -> None:
    settings_of(person, server)
    has(person, SYSTEMCTL)
    unit = person.home / ".config" / "systemd" / "user" / "cardsync-agent.service"
    assert person.runs("service", "status").code == 1
    for _ in range(2):
        said = person.runs("service", "install")
        assert (said.code, said.err) == (0, "")
        assert "loginctl enable-linger" in said.out
    assert f'"run" "--config" "{person.config}"' in unit.read_text()
    calls = (person.home / "systemctl.calls").read_text()
    assert "--user enable cardsync-agent.service" in calls
    assert "running" in person.runs("service", "status").out
    assert "ok    service      installed and running" in person.runs("doctor").out
    (person.home / "active").unlink()
    assert person.runs("doctor").code == 1
    assert person.runs("service", "remove").out == "The service is removed; the settings stay.\n"
    assert not unit.exists()
    assert person.runs("service", "remove").out == "There is no service.\n"
    assert person.config.exists()


def test_without_systemd_one_sentence_says_what_to_do(person: Person, server: FakeServer) -> None:
    settings_of(person, server)
    said = person.runs("service", "install")
    assert said.code == 1
    assert "no systemd for its users" in said.err
    assert len(said.err.splitlines()) == 1
    assert not (person.home / ".config" / "systemd").exists()


def test_a_service_needs_settings_and_a_key_in_a_file(person: Person, server: FakeServer) -> None:
    has(person, SYSTEMCTL)
    assert "there is no settings file" in person.runs("service", "install").err
    person.writes(f"[shop.cards]\nserver = '{server.url}'\nfolder = '{person.home}'\n")
    said = person.runs("service", "install")
    assert said.code == 2
    assert "has no key_file" in said.err


def test_the_unit_starts_the_agent(person: Person, server: FakeServer) -> None:
    """What systemd would start works: the words of ExecStart, as systemd reads them."""
    settings_of(person, server)
    has(person, SYSTEMCTL)
    person.runs("service", "install")
    unit = person.home / ".config" / "systemd" / "user" / "cardsync-agent.service"
    [start] = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
    words = start.removeprefix("ExecStart=").strip('"').split('" "')
    assert os.access(words[0], os.X_OK)
    assert words[1:3] == ["-m", "cardsync_agent"]
    said = person.runs(*words[3:], "--once")
    assert "sync done" in said.out
