"""The agent's workflow packs: the ones of the program, newer ones of the server, no going back, and
what a withdrawal does; over real HTTP, with files as a crash or a person may leave them.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.contract.agent_fake_server import KEY, FakeServer, Fault

from cardsync.agents.releases.signing import public_key_of
from cardsync_agent.client import Client, PackOffer, PersonsTurn, Refused, TryAgain
from cardsync_agent.events import Reporter
from cardsync_agent.signed_release import read_key
from cardsync_agent.workflow.pack import unrecorded
from cardsync_agent.workflow.pack_folder import (
    NoPack,
    PackFolder,
    packs_of_program,
    recorded_pack,
)
from packs_builder import LOCALE, MARKET, a_pack, a_step, signed

SIGNER, STRANGER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
KEYS = [read_key(public_key_of(SIGNER))]
OF = (MARKET, LOCALE)


class PackServer(FakeServer):
    """The fake server with signed packs, newest last, and killed versions."""

    def __init__(self) -> None:
        super().__init__()
        self.packs: list[bytes] = []
        self.killed: list[int] = []
        self.asked: list[int] = []

    def _answer(
        self, method: str, path: str, target: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if path != f"/api/v1/workflow/packs/{MARKET}":
            return super()._answer(method, path, target, headers, content)
        query = parse_qs(urlsplit(target).query)
        assert query["locale"] == [LOCALE]
        have = int(query["have"][0])
        self.asked.append(have)
        files = [json.loads(file) for file in self.packs]
        if not files and not self.killed:
            return 404, {"error": "there is no pack", "code": "not_found"}, {}
        left = [file for file in files if file["pack"]["version"] not in self.killed]
        newest = left[-1] if left else None
        answer = {"version": newest and newest["pack"]["version"], "killed": self.killed}
        if newest and newest["pack"]["version"] > have:
            answer |= newest
        return 200, answer, {}


class Computer:
    """The seller's computer: each `start` of the agent reads anew what is on its disk."""

    def __init__(self, home: Path, program: Path, server: PackServer) -> None:
        self.home, self.program, self.server = home, program, server
        self.out = io.StringIO()

    def start(self, **options: Any) -> PackFolder:
        options = {"keys": KEYS, "of_program": self.program} | options
        return PackFolder(self.home, say=Reporter(self.out, json_events=True), **options)

    def fetch(self, folder: PackFolder | None = None, **options: Any) -> int | None:
        client = Client(self.server.url, KEY)
        try:
            pack = (folder or self.start(**options)).fetch(client, *OF)
        finally:
            client.close()
        return pack.version if pack else None

    def version(self) -> int:
        return self.start().in_use(*OF).version

    def refusals(self) -> list[str]:
        events = map(json.loads, self.out.getvalue().splitlines())
        return [event["reason"] for event in events if event["event"] == "pack_refused"]

    @property
    def kept(self) -> Path:
        return self.home / "packs" / f"{MARKET}-{LOCALE}.json"


@pytest.fixture
def server():
    with PackServer() as fake:
        yield fake


@pytest.fixture
def computer(tmp_path, server):
    program = tmp_path / "program"
    (program / MARKET).mkdir(parents=True)
    (program / MARKET / "pack.json").write_text(json.dumps(a_pack(3)))
    return Computer(tmp_path / "home", program, server)


def test_a_pack_of_the_program_is_in_use_from_the_start(computer, server):
    assert computer.version() == 3
    assert computer.fetch() is None
    assert server.asked == [3]


def test_the_locale_chooses_among_the_programs_packs(computer):
    file = computer.program / MARKET / "pack-de.json"
    file.write_text(json.dumps(a_pack(8, locale="de")))
    assert computer.start().in_use(MARKET, "de").version == 8
    assert computer.version() == 3
    with pytest.raises(NoPack, match="there is no pack for this marketplace yet"):
        computer.start().in_use(MARKET, "fr")


def test_a_newer_pack_is_fetched_kept_and_used_after_the_next_start(computer, server):
    server.packs = [signed(a_pack(4), SIGNER), signed(a_pack(5), SIGNER)]
    folder = computer.start()
    assert folder.in_use(*OF).version == 3
    assert computer.fetch(folder) == 5
    assert folder.in_use(*OF).version == 5
    assert computer.version() == 5
    assert computer.fetch() is None
    assert server.asked == [3, 5]
    assert oct(computer.kept.parent.stat().st_mode)[-3:] == "700"


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (signed(a_pack(5), STRANGER), "no pinned key has signed it"),
        (signed(a_pack(5), SIGNER, domain=b""), "no pinned key has signed it"),
        (signed(a_pack(5, origins=["https://evil.example"]), SIGNER), "which is not allowed here"),
        (signed(a_pack(5, marketplace="other"), SIGNER), "it is for other"),
        (signed(a_pack(5, locale="de"), SIGNER), "it is for pages in de"),
    ],
)
def test_a_pack_that_is_not_believed_leaves_the_old_one_in_use(computer, server, file, reason):
    server.packs = [file]
    folder = computer.start()
    for _ in range(2):
        assert computer.fetch(folder) is None
    [told] = computer.refusals()
    assert reason in told
    assert not computer.kept.exists()
    assert computer.version() == 3


def test_without_a_pinned_key_nothing_of_the_server_is_used(computer, server):
    server.packs = [signed(a_pack(5), SIGNER)]
    assert computer.fetch(keys=[]) is None
    assert computer.refusals() == ["no key is pinned here that could have signed it"]


def test_the_sellers_configuration_may_allow_another_origin(computer, server):
    server.packs = [signed(a_pack(5, origins=["http://127.0.0.1:8123"]), SIGNER)]
    allowed = {"origins": {MARKET: ["http://127.0.0.1:8123"]}}
    assert computer.fetch(**allowed) == 5
    assert computer.start(**allowed).in_use(*OF).version == 5
    # Allowed no more, it is used no more; nor is an older one.
    with pytest.raises(NoPack, match="pack 3 is older than pack 5"):
        computer.start().in_use(*OF)


def lying(version: int) -> dict[str, Any]:
    """What a server says that offers an older pack as a newer one."""
    file = json.loads(signed(a_pack(version), SIGNER))
    return {"version": 99, "killed": [], **file}


def offer(server: PackServer, body: dict[str, Any]) -> None:
    server.faults = [Fault(f"workflow/packs/{MARKET}", 200, times=9, body=body)]


def test_there_is_no_going_back(computer, server):
    server.packs = [signed(a_pack(5), SIGNER)]
    assert computer.fetch() == 5
    assert computer.version() == 5
    for version in (1, 4, 5):
        offer(server, lying(version))
        assert computer.fetch() is None
    assert [reason.partition(",")[0] for reason in computer.refusals()] == [
        "it is version 1", "it is version 4", "it is version 5"
    ]  # fmt: skip
    # An older version of the program brings an older pack, and a file from before is put back.
    computer.kept.write_bytes(signed(a_pack(4), SIGNER))
    with pytest.raises(NoPack, match="pack 4 is older than pack 5, which was used before"):
        computer.version()
    server.faults = []
    assert computer.fetch() == 5
    assert computer.version() == 5


def test_a_newer_program_brings_a_newer_pack(computer, server):
    server.packs = [signed(a_pack(5), SIGNER)]
    assert computer.fetch() == 5
    (computer.program / MARKET / "pack.json").write_text(json.dumps(a_pack(6)))
    assert computer.version() == 6
    computer.kept.unlink()
    assert computer.fetch() is None


def test_a_withdrawn_pack_is_not_used_until_a_newer_one_comes(computer, server):
    server.packs = [signed(a_pack(5), SIGNER)]
    folder = computer.start()
    assert computer.fetch(folder) == 5
    assert folder.in_use(*OF).version == 5
    server.killed = [5]
    assert computer.fetch(folder) is None
    for one in (folder, computer.start()):
        with pytest.raises(NoPack) as failed:
            one.in_use(*OF)
        assert str(failed.value) == "pack 5 was withdrawn; waiting for a newer one"
    server.packs.append(signed(a_pack(6), SIGNER))
    assert computer.fetch() == 6
    assert computer.version() == 6


def test_a_pack_of_the_program_can_be_withdrawn_and_given_back(computer, server):
    server.killed = [3]
    assert computer.fetch() is None
    with pytest.raises(NoPack, match="pack 3 was withdrawn"):
        computer.version()
    server.killed = []
    assert computer.fetch() is None
    assert computer.version() == 3


def test_a_withdrawn_pack_that_was_never_used_leaves_the_one_in_use(computer, server):
    server.packs = [signed(a_pack(5), SIGNER)]
    assert computer.version() == 3
    assert computer.fetch() == 5
    server.killed = [5]
    assert computer.fetch() is None
    assert computer.version() == 3


def test_a_pack_that_the_same_answer_withdraws_is_not_kept(computer, server):
    offer(server, lying(5) | {"killed": [5]})
    assert computer.fetch() is None
    assert computer.refusals() == ["version 5 was withdrawn"]


def test_a_file_that_was_altered_is_refused_and_fetched_again(computer, server):
    server.packs = [signed(a_pack(5), SIGNER)]
    assert computer.fetch() == 5
    assert computer.version() == 5
    whole = computer.kept.read_bytes()
    for broken in (whole.replace(b"export_inventory", b"import_prices"), whole[:-9], b""):
        computer.kept.write_bytes(broken)
        with pytest.raises(NoPack, match="pack 3 is older than pack 5"):
            computer.version()
        assert computer.fetch() == 5
        assert computer.version() == 5
    assert len(computer.refusals()) >= 3


def test_a_memory_that_cannot_be_read_stops_the_step_and_says_what_to_do(computer, server):
    assert computer.version() == 3
    memory = computer.home / "packs" / "memory.json"
    memory.write_text("{")
    with pytest.raises(NoPack, match=r"memory\.json"):
        computer.version()
    memory.unlink()
    assert computer.version() == 3


def test_a_pack_of_the_program_that_cannot_be_read_is_named(computer):
    (computer.program / MARKET / "pack.json").write_text("{}")
    with pytest.raises(NoPack, match=r"pack\.json that came with the sync app cannot be used"):
        computer.version()


@pytest.mark.parametrize(("status", "kind"), [(503, TryAgain), (0, TryAgain), (422, Refused)])
def test_a_server_that_does_not_answer_changes_nothing(computer, server, status, kind):
    assert computer.version() == 3
    server.faults = [Fault("workflow/packs", status)]
    with pytest.raises(kind):
        computer.fetch()
    assert computer.version() == 3


@pytest.mark.parametrize(
    ("body", "understood"),
    [
        ({"version": 5, "killed": [1, 2]}, PackOffer(frozenset({1, 2}))),
        ({"version": None, "killed": None}, PackOffer()),
        ({"killed": ["5", True, 7], "pack": "x"}, PackOffer(frozenset({7}))),
        ({}, PackOffer()),
    ],
)
def test_an_odd_answer_is_no_pack(server, body, understood):
    offer(server, body)
    client = Client(server.url, KEY)
    assert client.workflow_pack(MARKET, LOCALE, 0) == understood
    client.close()


KILLED_HALF_WAY = """
import os, sys
from pathlib import Path
from cardsync_agent import durable
from cardsync_agent.client import Client
from cardsync_agent.events import Reporter
from cardsync_agent.signed_release import read_key
from cardsync_agent.workflow.pack_folder import PackFolder

def die(*_): os._exit(9)
durable.os.replace = die
home, program, url, key, pinned = sys.argv[1:]
folder = PackFolder(Path(home), [read_key(pinned)], Reporter(sys.stdout), of_program=Path(program))
folder.fetch(Client(url, key), "test_market", "en")
"""


def test_a_kill_while_a_pack_is_written_leaves_the_old_one(computer, server):
    server.packs = [signed(a_pack(5), SIGNER)]
    arguments = (computer.home, computer.program, server.url, KEY, public_key_of(SIGNER))
    ran = subprocess.run([sys.executable, "-c", KILLED_HALF_WAY, *map(str, arguments)], check=False)
    assert ran.returncode == 9
    assert not computer.kept.exists()
    assert computer.version() == 3
    assert computer.fetch() == 5


# What this computer's person has recorded


def recorded(computer, version, **changes):
    file = recorded_pack(computer.home, MARKET)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(a_pack(version, **changes)))


SIGN_IN = "https://sign-in.example"
MINE = {"locators": [{"css": "#mine"}]}
TO_RECORD = {"locators": [], "recorded": False}


def test_a_recording_is_used_until_a_newer_pack_comes_and_hides_none(computer, server):
    recorded(computer, 4, elements={"export": MINE})
    assert computer.version() == 4
    assert computer.start().about_recording(*OF) is None
    # The operator's pack has the number of the recording: it is offered all the same, and counts.
    server.packs = [signed(a_pack(4), SIGNER)]
    assert computer.fetch() == 4
    assert server.asked == [3]
    [way] = computer.start().in_use(*OF).elements["export"].locators
    assert way.role == "button"
    told = computer.start().about_recording(*OF)
    assert told == "version 4 is newer than your recording 4; nothing is used of your own"


def test_what_a_newer_pack_does_not_know_is_taken_from_the_recording(computer, server):
    step = a_step(element="export", then={"file": "inventory", "visible": "export"})
    recorded(
        computer, 4, elements={"export": MINE, "buyer": MINE, "password": MINE}, masked=["buyer"],
        workflows={"export_inventory": {"steps": [step]}},
        your_turn=[{"kind": "sign_in", "any_of": ["password"]}], sign_in_origins=[SIGN_IN],
    )  # fmt: skip
    newer = a_pack(5, elements={"export": TO_RECORD}, sign_in_origins=[SIGN_IN])
    server.packs = [signed(newer, SIGNER)]
    assert computer.fetch() == 5
    pack = computer.start().in_use(*OF)
    assert (pack.version, unrecorded(pack, "export_inventory")) == (5, [])
    [done] = pack.workflows["export_inventory"].steps
    assert (done.then.visible, pack.elements["export"].locators[0].css) == ("export", "#mine")
    assert (pack.masked, pack.your_turn[0].any_of) == (("buyer",), ("password",))
    assert pack.sign_in_origins == (SIGN_IN,)
    assert "used of your recording: export_inventory" in computer.start().about_recording(*OF)


def test_the_programs_own_folder_says_what_it_holds():
    folder = packs_of_program()
    assert "One folder holds" in (folder / "README.md").read_text()
    for file in folder.glob("*/pack*.json"):
        pack = json.loads(file.read_text())
        assert pack["marketplace"] == file.parent.name


# The person's turn


@pytest.mark.parametrize(
    ("turn", "sent"),
    [
        ((), {}),
        ((None,), {"your_turn": None, "your_turn_host": None}),
        (
            (PersonsTurn("captcha", "market.example"),),
            {"your_turn": "captcha", "your_turn_host": "market.example"},
        ),
        ((PersonsTurn("paused"),), {"your_turn": "paused", "your_turn_host": None}),
        # The server would refuse the whole heartbeat.
        (
            (PersonsTurn("sign_in", "user:pass@market.example/x"),),
            {"your_turn": "sign_in", "your_turn_host": None},
        ),
    ],
)
def test_the_heartbeat_says_what_the_agent_waits_for(server, turn, sent):
    client = Client(server.url, KEY)
    client.heartbeat("1.0", "linux/amd64", *turn)
    client.close()
    assert server.heartbeats == [{"version": "1.0", "platform": "linux/amd64"} | sent]
