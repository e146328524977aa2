"""The agent's own updates: a file that a pinned key signed is fetched, verified and handed over
once; everything else is refused and reported.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.contract.agent_fake_server import KEY, FakeServer
from tests.contract.agent_process import Agents, Ended
from tests.contract.test_agent_loop import Running

from cardsync.agents.releases import offer as server_side
from cardsync.agents.releases.signing import canonical, public_key_of, sign
from cardsync_agent import __version__, signed_release
from cardsync_agent.loop import PLATFORM
from waiting import until

SIGNER, STRANGER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
PINNED = ("--release-public-key", public_key_of(SIGNER))
CONTENT = bytes(range(256)) * 800
# Nothing to sync: what is left are the heartbeat and the update.
POINTS = 7
POINT_OF_COMMANDING = 7  # with an update command: the journal's note that it starts


class ReleaseServer(FakeServer):
    """The fake server with an update on offer and its download."""

    def __init__(self) -> None:
        super().__init__()
        self.due = False
        self.offer: dict[str, Any] | None = None
        self.content = CONTENT
        self.cut_at: int | None = None
        self.ranges: list[str | None] = []
        self.keys_seen: list[str | None] = []

    def _small(self, name: str, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        status, answer, headers = super()._small(name, body)
        if name == "heartbeat" and self.offer is not None:
            answer |= {"update_available": True, **self.offer}
        return status, answer, headers

    def _answer(
        self, method: str, path: str, target: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if not path.startswith("/downloads/"):
            return super()._answer(method, path, target, headers, content)
        self.ranges.append(headers.get("range"))
        self.keys_seen.append(headers.get("authorization"))
        start = int(headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start >= len(self.content):
            return 416, None, {}
        part = self.content[start:]
        told = {"Content-Length": str(len(part)), "Content-Type": "application/octet-stream"}
        if start:
            told["Content-Range"] = f"bytes {start}-{len(self.content) - 1}/{len(self.content)}"
        if self.cut_at is not None and start < self.cut_at:
            part = part[: self.cut_at - start]
        return 206 if start else 200, part, told


@pytest.fixture
def server() -> Iterator[ReleaseServer]:
    with ReleaseServer() as fake:
        yield fake


Once = Callable[..., Ended]


@pytest.fixture
def once(agents: Agents, server: ReleaseServer, folder: Path) -> Once:
    """One run of the agent, by default with the signer's key pinned."""

    def once(*options: str, pinned: tuple[str, ...] = PINNED, **kill: Any) -> Ended:
        arguments = (
            "--server",
            server.url,
            "--key",
            KEY,
            "--folder",
            str(folder),
            "--once",
            *pinned,
            *options,
        )
        return agents.run(*arguments, **kill)

    return once


def in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def an_offer(
    content: bytes = CONTENT, key: Ed25519PrivateKey = SIGNER, **record: Any
) -> dict[str, Any]:
    """An update as the server signs and offers it; `record` fields instead of the usual ones."""
    usual = {
        "version": "9.1.0",
        "platform": PLATFORM,
        "sha256": hashlib.sha256(content).hexdigest(),
        "min_from": None,
        "expires_at": in_days(30),
    }
    release = usual | record
    return {
        "latest_version": release["version"],
        "download_url": f"/downloads/agent/{release['version']}/{PLATFORM}/cardsync_agent.whl",
        "signature": sign(key, content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "release": release,
        "release_signature": sign(key, canonical(release)),
    }


def placed(folder: Path) -> list[str]:
    updates = folder / "updates"
    return (
        sorted(str(path.relative_to(updates)) for path in updates.rglob("*") if path.is_file())
        if updates.is_dir()
        else []
    )


def staged(folder: Path) -> list[Path]:
    return [path for path in (folder / ".cardsync-agent" / "updates").rglob("*") if path.is_file()]


HASH = hashlib.sha256(CONTENT).hexdigest()[:12]
PLACED = [f"9.1.0-{HASH}/cardsync_agent.whl", f"9.1.0-{HASH}/release.json"]


def assert_handed_over(folder: Path) -> None:
    assert placed(folder) == PLACED
    assert (folder / "updates" / PLACED[0]).read_bytes() == CONTENT
    assert staged(folder) == []


def refusal(ended: Ended) -> str:
    [refused] = ended.named("update_refused")
    assert ended.named("update_ready") == []
    return str(refused["reason"])


# Handing over


def test_a_signed_update_is_handed_over_with_its_proof(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer = an_offer()
    ended = once()
    assert ended.returncode == 0, ended.errors
    assert_handed_over(folder)
    [ready] = ended.named("update_ready")
    target = folder / "updates" / f"9.1.0-{HASH}"
    assert (ready["path"], ready["latest_version"]) == (str(target), "9.1.0")
    proof = json.loads((target / "release.json").read_bytes())
    assert proof == {
        name: server.offer[name] for name in ("release", "release_signature", "signature")
    }
    assert server.keys_seen == [None]


def test_it_is_fetched_once_and_told_at_each_start(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer = an_offer()
    for _ in range(3):
        assert len(once().named("update_ready")) == 1
    assert len(server.ranges) == 1


def test_what_the_installer_took_away_is_not_fetched_again(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer = an_offer()
    once()
    for path in PLACED:
        (folder / "updates" / path).unlink()
    (folder / "updates" / f"9.1.0-{HASH}").rmdir()
    assert once().named("update_ready") == []
    assert len(server.ranges) == 1


def test_a_newer_update_takes_the_place_of_an_older_one(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer = an_offer()
    once()
    (folder / "updates" / "notes.txt").write_text("not the agent's")
    server.content = b"newer"
    server.offer = an_offer(b"newer", version="9.2.0")
    once()
    assert [name for name in placed(folder) if name.endswith(".whl")] == [
        f"9.2.0-{hashlib.sha256(b'newer').hexdigest()[:12]}/cardsync_agent.whl"
    ]
    assert "notes.txt" in placed(folder)


def test_the_cycle_goes_on_beside_the_update(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer, server.due = an_offer(), True
    ended = once()
    assert ended.named("cycle_finished")[0]["status"] == "success"
    assert_handed_over(folder)


def test_any_of_several_pinned_keys_will_do(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer = an_offer()
    once(pinned=("--release-public-key", public_key_of(STRANGER), *PINNED))
    assert_handed_over(folder)


def test_without_a_pinned_key_an_update_is_only_told(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer = an_offer()
    ended = once(pinned=())
    assert [event["latest_version"] for event in ended.named("update_available")] == ["9.1.0"]
    assert ended.named("update_refused") == ended.named("update_ready") == server.ranges == []
    assert not (folder / "updates").exists()


@pytest.mark.parametrize(
    ("last", "name"),
    [
        ("..%2f..%2fevil", "evil"),
        ("", "update"),
        ("release.json", "update"),
        ("a%20b%00c.exe", "a_b_c.exe"),
    ],
)
def test_the_name_comes_from_the_address_and_stays_in_its_folder(
    once: Once, server: ReleaseServer, folder: Path, last: str, name: str
) -> None:
    server.offer = an_offer() | {"download_url": f"{server.url}/downloads/x/{last}?a=b/c"}
    once()
    assert placed(folder) == sorted([f"9.1.0-{HASH}/{name}", f"9.1.0-{HASH}/release.json"])


# Refusals

REFUSED_UNFETCHED = {
    "a stranger's signatures": (an_offer(key=STRANGER), "no pinned key has signed its record"),
    "no record": (
        an_offer() | {"release": None, "release_signature": None},
        "no pinned key has signed its record",
    ),
    "no record's signature": (
        an_offer() | {"release_signature": ""},
        "no pinned key has signed its record",
    ),
    "a signature that is none": (
        an_offer() | {"release_signature": "nonsense!"},
        "no pinned key has signed",
    ),
    "the installed version": (an_offer(version=__version__), "not newer"),
    "an old signed build": (an_offer(version="0.0.9"), "not newer"),
    "another platform": (an_offer(platform="plan9/mips"), "it is for plan9/mips"),
    "an expired record": (an_offer(expires_at=in_days(-1)), "expired"),
    "a record about other bytes": (an_offer(sha256="0" * 64), "about other bytes"),
    "too old to update to it": (an_offer(min_from="8.0"), "over 8.0 or newer"),
    "a version that is none": (an_offer(version="newest"), "cannot be read"),
    "an expiry that is none": (an_offer(expires_at="never"), "cannot be read"),
    "a version that is no text": (an_offer(version=9), "cannot be read"),
    "a record that lacks a field": (
        an_offer()
        | {
            "release": {"version": "9"},
            "release_signature": sign(SIGNER, canonical({"version": "9"})),
        },
        "cannot be read",
    ),
}


@pytest.mark.parametrize("case", REFUSED_UNFETCHED)
def test_what_its_record_does_not_allow_is_not_even_fetched(
    once: Once, server: ReleaseServer, folder: Path, case: str
) -> None:
    server.offer, words = REFUSED_UNFETCHED[case]
    ended = once()
    assert words in refusal(ended)
    assert (server.ranges, placed(folder), ended.returncode) == ([], [], 0)


FIELDS = {
    "version": "9.9.9",
    "platform": "any/any",
    "sha256": "1" * 64,
    "min_from": "0.1",
    "expires_at": in_days(900),
    "more": 1,
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_record_that_was_changed_after_it_was_signed(
    once: Once, server: ReleaseServer, folder: Path, name: str
) -> None:
    offer = an_offer()
    offer["release"][name] = FIELDS[name]
    server.offer = offer
    assert "no pinned key has signed its record" in refusal(once())
    assert server.ranges == []


def test_an_old_build_cannot_be_passed_off_under_a_newer_ones_record(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    # Both were signed by the right key once; their bytes and records do not belong together.
    old = an_offer(b"an old build with a hole", version="0.0.9")
    server.content = b"an old build with a hole"
    server.offer = an_offer() | {name: old[name] for name in ("signature", "sha256")}
    assert "about other bytes" in refusal(once())
    server.offer = an_offer() | {"signature": old["signature"]}
    assert "not those of its record" in refusal(once())
    assert placed(folder) == staged(folder) == []


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b + b"x", lambda b: b[:500] + b"!" + b[501:]]
)
def test_tampered_bytes_are_refused_and_thrown_away(
    once: Once, server: ReleaseServer, folder: Path, change: Callable[[bytes], bytes]
) -> None:
    server.offer, server.content = an_offer(), change(CONTENT)
    assert "not those of its record" in refusal(once())
    assert placed(folder) == staged(folder) == []
    server.content = CONTENT
    once()
    assert_handed_over(folder)


SIGNATURES = {
    "a stranger's": sign(STRANGER, CONTENT),
    "of other bytes": sign(SIGNER, b"other"),
    "none": "",
    "too short": base64.b64encode(b"x").decode(),
}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_bytes_need_a_signature_of_their_own(
    once: Once, server: ReleaseServer, folder: Path, signature: str
) -> None:
    server.offer = an_offer() | {"signature": SIGNATURES[signature]}
    assert "no pinned key has signed its bytes" in refusal(once())
    assert placed(folder) == staged(folder) == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "", "/downloads/x", "ftp://x/y", "http://[broken"]
)
def test_an_address_that_leads_nowhere_hurts_nothing(
    once: Once, server: ReleaseServer, folder: Path, url: str
) -> None:
    server.offer, server.due = an_offer() | {"download_url": url}, True
    server.content = b"<html>not found</html>"
    ended = once()
    assert ended.named("cycle_finished")[0]["status"] == "success"
    assert placed(folder) == []


# Interrupted


def test_a_download_that_was_cut_off_goes_on_where_it_ended(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer, server.cut_at = an_offer(), 100_000
    assert once().named("retrying")[0]["what"] == "fetching the update"
    assert [path.stat().st_size for path in staged(folder)] == [100_000]
    assert placed(folder) == []
    server.cut_at = None
    once()
    assert server.ranges == [None, "bytes=100000-"]
    assert_handed_over(folder)


@pytest.mark.night
def test_what_was_begun_of_another_update_is_thrown_away(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer, server.cut_at = an_offer(), 100_000
    once()
    server.content, server.cut_at = b"newer", None
    server.offer = an_offer(b"newer", version="9.2.0")
    once()
    assert server.ranges == [None, None]
    assert staged(folder) == []
    assert placed(folder)[0].startswith("9.2.0-")


def test_the_points_are_all_covered(once: Once, server: ReleaseServer, folder: Path) -> None:
    server.offer = an_offer()
    assert len(once().points) == POINTS
    assert_handed_over(folder)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_killed_at_any_point_it_is_handed_over_whole_by_the_next_start(
    once: Once, server: ReleaseServer, folder: Path, point: int, side: str
) -> None:
    server.offer = an_offer()
    assert once(kill_at=point, side=side).returncode == -signal.SIGKILL
    assert placed(folder) in ([], PLACED)
    once()
    assert_handed_over(folder)
    # At most the bytes of one whole download came, whatever was asked again.
    assert server.ranges.count(None) <= 2


# In the loop


@pytest.fixture
def loop(
    server: ReleaseServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Running]]:
    """The agent without --once; its key is pinned by the environment."""
    monkeypatch.setenv(
        "CARDSYNC_AGENT_RELEASE_PUBLIC_KEY", f"{public_key_of(STRANGER)}, {PINNED[1]}"
    )
    started: list[Running] = []

    def start(**pace: str) -> Running:
        started.append(Running(server, folder, **pace))
        return started[-1]

    yield start
    for agent in started:
        agent.close()


@pytest.mark.day
def test_a_long_download_leaves_room_for_heartbeats_and_survives_kill_9(
    loop: Callable[..., Running], server: ReleaseServer, folder: Path
) -> None:
    content = os.urandom(2_000_000)
    server.content, server.offer = content, an_offer(content)
    # A slice of no length: whatever came at once, then the next heartbeat.
    agent = loop(UPDATE_SLICE="0", INTERVAL="0.2")
    until(lambda: any(path.stat().st_size for path in staged(folder)), "a file", pause=0.01)
    agent.process.kill()
    agent.process.wait(60)
    [part] = staged(folder)
    assert 0 < part.stat().st_size < len(content)
    again = loop(UPDATE_SLICE="0", INTERVAL="0.02")
    again.wait_for("ready to install")
    assert again.stop() == 0
    [file] = (folder / "updates").rglob("*.whl")
    assert file.read_bytes() == content
    assert server.ranges.count(None) == 1
    assert len(server.heartbeats) >= len(server.ranges) > 2


@pytest.mark.night
def test_a_killed_version_goes_on_with_heartbeats_alone_until_it_is_let_go(
    loop: Callable[..., Running], server: ReleaseServer
) -> None:
    server.force_update, server.due = True, True
    agent = loop()
    until(lambda: len(server.heartbeats) > 3, "heartbeats")
    assert not [call for call in server.calls if "sync/" in call]
    server.force_update = False
    agent.wait_for("sync done")
    assert agent.stop() == 0
    assert len([line for line in agent.lines if "must be updated" in line]) == 1


@pytest.mark.night
def test_a_refused_update_is_told_once_and_not_fetched_with_every_heartbeat(
    loop: Callable[..., Running], server: ReleaseServer
) -> None:
    server.offer, server.content = an_offer(), b"something else"
    agent = loop(INTERVAL="0.02")
    agent.wait_for("is refused")
    told = len(server.heartbeats)
    until(lambda: len(server.heartbeats) > told + 5, "heartbeats")
    assert len(server.ranges) == 1
    # Offered anew, it is looked at anew.
    server.content = CONTENT
    server.offer = an_offer(expires_at=in_days(31))
    agent.wait_for("ready to install")
    assert agent.stop() == 0
    assert len([line for line in agent.lines if "is refused" in line]) == 1


# A version that was killed


def test_a_killed_version_runs_no_cycle_but_fetches_its_update(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer, server.due, server.force_update = an_offer(), True, True
    ended = once()
    assert ended.returncode == 1
    assert ended.named("update_required")
    assert ended.named("cycle_started") == []
    assert not [call for call in server.calls if "sync/" in call]
    assert_handed_over(folder)


# Altered where it was placed


def a_strange_one_beside(target: Path) -> None:
    (target / "another.whl").write_bytes(b"evil")


def a_link(target: Path) -> None:
    (target.parent / "elsewhere").write_bytes(CONTENT)
    (target / "cardsync_agent.whl").unlink()
    (target / "cardsync_agent.whl").symlink_to(target.parent / "elsewhere")


def a_strangers_record(target: Path) -> None:
    offer = an_offer(key=STRANGER)
    proof = {name: offer[name] for name in ("release", "release_signature", "signature")}
    (target / "release.json").write_text(json.dumps(proof))


ALTERED: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda target: (target / "cardsync_agent.whl").write_bytes(b"evil"),
    "a file more": a_strange_one_beside,
    "a link": a_link,
    "no record": lambda target: (target / "release.json").unlink(),
    "a record that is none": lambda target: (target / "release.json").write_text('{"release": 1}'),
    "a stranger's record": a_strangers_record,
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", ALTERED)
def test_what_was_altered_since_it_was_placed_is_fetched_anew(
    once: Once, server: ReleaseServer, folder: Path, installer: tuple[str, Path], case: str
) -> None:
    command, notes = installer
    server.offer = an_offer()
    once()
    ALTERED[case](folder / "updates" / f"9.1.0-{HASH}")
    ended = once("--update-command", command)
    assert len(server.ranges) == 2
    assert any(
        "not the update that was signed" in event["text"] for event in ended.named("problem")
    )
    assert len(ended.named("update_ready")) == 1
    assert [path for path in placed(folder) if path.startswith("9.1.0")] == PLACED
    assert (folder / "updates" / PLACED[0]).read_bytes() == CONTENT
    assert starts(notes) == [f"{folder / 'updates' / PLACED[0]} False"]


def test_a_folder_that_lay_there_first_is_not_believed(
    once: Once, server: ReleaseServer, folder: Path, installer: tuple[str, Path]
) -> None:
    command, notes = installer
    server.offer = an_offer()
    (folder / "updates" / f"9.1.0-{HASH}").mkdir(parents=True)
    (folder / "updates" / PLACED[0]).write_bytes(b"evil")
    server.cut_at = 100_000  # not even while the true one is on its way
    ended = once("--update-command", command)
    assert (ended.named("update_ready"), ended.named("update_command"), placed(folder)) == (
        [],
        [],
        [],
    )
    server.cut_at = None
    assert len(once("--update-command", command).named("update_command")) == 1
    assert_handed_over(folder)
    assert starts(notes) == [f"{folder / 'updates' / PLACED[0]} False"]


@pytest.mark.first(1)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_killed_while_fetching_anew_it_is_not_taken_for_used(
    once: Once, server: ReleaseServer, folder: Path, point: int, side: str
) -> None:
    server.offer = an_offer()
    once()
    (folder / "updates" / PLACED[0]).write_bytes(b"evil")
    assert once(kill_at=point, side=side).returncode == -signal.SIGKILL
    assert len(once().named("update_ready")) == 1
    assert_handed_over(folder)


def test_what_the_update_command_was_given_stays_with_it(
    once: Once, server: ReleaseServer, folder: Path, installer: tuple[str, Path]
) -> None:
    # The installer may be at work there, unpacking beside the file.
    server.offer = an_offer()
    once("--update-command", installer[0])
    starts(installer[1])
    a_strange_one_beside(folder / "updates" / f"9.1.0-{HASH}")
    ended = once("--update-command", installer[0])
    assert (ended.named("update_ready"), ended.named("update_command")) == ([], [])
    assert (folder / "updates" / f"9.1.0-{HASH}" / "another.whl").exists()
    assert len(server.ranges) == 1


# The update command


@pytest.fixture
def installer(folder: Path) -> tuple[str, Path]:
    """A command that notes each start with its argument and its environment, and where it notes
    them.
    """
    notes = folder.parent / "installed"
    program = folder.parent / "install it.py"
    program.write_text(
        f"import os, sys; print('installing'); open({str(notes)!r}, 'a').write("
        "sys.argv[1] + ' ' + str('CARDSYNC_AGENT_KEY' in os.environ) + chr(10))"
    )
    return shlex.join([sys.executable, str(program)]), notes


def starts(notes: Path) -> list[str]:
    """The installer is on its own: give it its moment."""
    ends = time.monotonic() + 90
    while not notes.exists() or not notes.read_text().endswith("\n"):
        assert time.monotonic() < ends, "the command was not started"
        time.sleep(0.01)
    return notes.read_text().splitlines()


def test_the_update_command_is_started_once_with_the_path(
    once: Once, server: ReleaseServer, folder: Path, installer: tuple[str, Path]
) -> None:
    command, notes = installer
    server.offer = an_offer()
    assert once().named("update_command") == []
    for told in (1, 0, 0):
        ended = once("--update-command", command)
        assert len(ended.named("update_command")) == told
    assert starts(notes) == [f"{folder / 'updates' / PLACED[0]} False"]


def test_an_installer_that_kills_the_agent_is_not_started_again(
    once: Once, server: ReleaseServer, folder: Path, installer: tuple[str, Path]
) -> None:
    command, notes = installer
    server.offer = an_offer()
    killed = once("--update-command", command, kill_at=POINT_OF_COMMANDING, side="after")
    assert killed.points[-1].endswith("state.json")
    once("--update-command", command)
    assert not notes.exists()


def test_a_command_that_cannot_be_started_is_told(
    once: Once, server: ReleaseServer, folder: Path
) -> None:
    server.offer, server.due = an_offer(), True
    ended = once("--update-command", "/no/such/installer --quiet")
    assert any("cannot be started" in event["text"] for event in ended.named("problem"))
    assert ended.named("cycle_finished")[0]["status"] == "success"
    assert_handed_over(folder)


# The command line


@pytest.mark.parametrize("key", ["nonsense!", "", base64.b64encode(b"short").decode()])
def test_a_pinned_key_that_is_none_is_wrong_usage(once: Once, key: str) -> None:
    ended = once(pinned=("--release-public-key", key))
    assert (ended.returncode, len(ended.errors.splitlines())) == (2, 1)
    assert "release key" in ended.errors


def test_an_update_command_needs_a_pinned_key(once: Once) -> None:
    ended = once("--update-command", "install", pinned=())
    assert ended.returncode == 2
    assert "--update-command needs --release-public-key" in ended.errors


@pytest.mark.parametrize(
    "one",
    ["linux/x86_64", "Linux/AMD64", "darwin/aarch64", "macos/arm64", "win32/x64", "windows/386"],
)
@pytest.mark.parametrize(
    "other", ["linux/amd64", "darwin/arm64", "windows/amd64", "windows/i686", "linux"]
)
def test_agent_and_server_agree_on_platforms(one: str, other: str) -> None:
    same = signed_release.same_platform(one) == signed_release.same_platform(other)
    assert same is (server_side.same_platform(one) == server_side.same_platform(other))
