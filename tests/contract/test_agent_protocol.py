"""The agent follows the server's word: every kind, every plan, a cancel in every phase,
cooldowns, and servers older and newer than it.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_fake_server import HEADER, KEY, FakeServer, Fault, pricing_csv
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import drop, once, the_log

from cardsync_agent import __version__
from cardsync_agent.client import Client, Cooldown
from cardsync_agent.tasks import TASK_KINDS

CHAIN = [
    "export_inventory",
    "upload_inventory",
    "await_repricing",
    "download_price_updates",
    "import_prices",
]
DONE = ("success", None)
PUT = "PUT /objects/syncs/u1/1.csv"


def unable(step: str) -> tuple[str, str]:
    return "skipped", f"this sync app can't {step.replace('_', ' ')} yet"


# Kinds and plans


LACKING = {
    "fetch_orders": "no order list in the inbox",
    "fetch_order_items": "no pull sheet in the inbox",
    "fetch_shipping": "no shipping export in the inbox",
    "fetch_refunds": "no refund export in the inbox",
    "fetch_feedback": "no feedback export in the inbox",
    "fetch_sales_report": "no sales summary in the inbox",
    "refresh_account": "account details aren't available in folder mode",
}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("orders", ["fetch_orders", "fetch_order_items", "fetch_shipping"]),
        ("refunds", ["fetch_orders", "fetch_refunds"]),
        ("feedback", ["fetch_orders", "fetch_feedback"]),
        ("sales", ["fetch_sales_report"]),
        ("account", ["refresh_account"]),
    ],
)
def test_a_kind_that_the_inbox_has_no_file_for_fails_and_says_so(
    agents: Agents, server: FakeServer, folder: Path, kind: str, steps: list[str]
) -> None:
    server.due = False
    ended = once(agents, server, folder, "--request", kind)
    assert ended.returncode == 1
    assert the_log(server) == ("failed", {step: ("skipped", LACKING[step]) for step in steps})
    assert LACKING[steps[0]] in ended.named("cycle_finished")[0]["text"]
    assert once(agents, server, folder).named("waiting")


def test_a_full_sync_does_its_part_and_does_not_claim_the_rest(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    """`first_sync`: a success would report that the history was fetched."""
    server.kind, server.first_sync = "full", True
    ended = once(agents, server, folder)
    assert ended.returncode == 0
    status, steps = the_log(server)
    assert status == "partial"
    assert steps == {
        **dict.fromkeys(CHAIN, DONE),
        **{name: ("skipped", why) for name, why in LACKING.items()},
    }
    assert "no file for: orders, order items, shipping" in ended.named("cycle_finished")[0]["text"]
    assert server.log_agents == [ended.named("started")[0]["agent_id"]]


def test_it_advertises_what_it_can_do(agents: Agents, server: FakeServer, folder: Path) -> None:
    once(agents, server, folder)
    can_do = (*CHAIN, *LACKING, *TASK_KINDS)
    assert set(server.capabilities) == {",".join(f"{name}@1" for name in can_do)}


def test_a_plan_is_followed_in_its_order_and_what_it_skips_is_not_run(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    fresh = {
        "reason": "fresh",
        "last_succeeded_at": "2026-11-21T07:55:00Z",
        "freshness_seconds": 900,
    }
    server.plan = {
        "kind": "pricing",
        "steps": ["play_cards", "download_price_updates", "import_prices"],
        "skipped": [{"name": "export_inventory", **fresh}, {"name": "upload_inventory", **fresh}],
        "error": None,
    }
    ended = once(agents, server, folder)
    assert ended.returncode == 0
    assert server.uploads == {}
    assert [e["step"] for e in ended.named("step_started")] == [
        "download_price_updates",
        "import_prices",
    ]
    assert the_log(server) == (
        "partial",
        {
            "export_inventory": ("skipped", "fresh"),
            "upload_inventory": ("skipped", "fresh"),
            "play_cards": unable("play_cards"),
            "download_price_updates": DONE,
            "import_prices": DONE,
        },
    )


def test_a_plan_that_finds_everything_fresh_is_a_success(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.plan = {
        "kind": "pricing",
        "steps": [],
        "skipped": [{"name": name, "reason": "fresh"} for name in CHAIN],
    }
    assert once(agents, server, folder).returncode == 0
    assert the_log(server) == ("success", dict.fromkeys(CHAIN, ("skipped", "fresh")))


def test_a_refused_plan_is_told_and_no_cycle_is_run(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.plan = {
        "kind": "full",
        "steps": [],
        "skipped": [],
        "error": "capability_mismatch: play_cards@1",
    }
    ended = once(agents, server, folder)
    assert ended.returncode == 1
    [told] = ended.named("plan_refused")
    assert told["error"] == "capability_mismatch: play_cards@1"
    assert (server.logs, server.uploads) == ([], {})


# Cancel


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("after", "step", "uploads"),
    [
        ("sync/pending", "export_inventory", 0),
        ("upload-request", "upload_inventory", 0),
        ("u1/1.csv", "upload_inventory", 0),
        ("/sync", "await_repricing", 1),
        ("uploads/1", "await_repricing", 1),
    ],
)
@pytest.mark.parametrize("key_flow", [True, False])
def test_a_cancel_stops_the_cycle_at_the_next_step(
    agents: Agents,
    server: FakeServer,
    folder: Path,
    after: str,
    step: str,
    uploads: int,
    key_flow: bool,
) -> None:
    if after == "u1/1.csv" and not key_flow:
        pytest.skip("the raw form has no object")
    server.cancel_after, server.key_flow = after, key_flow
    ended = once(agents, server, folder)
    assert ended.returncode == 1
    status, steps = the_log(server)
    assert (status, steps[step]) == ("failed", ("failed", "cancelled by the seller"))
    later = CHAIN[CHAIN.index(step) + 1 :]
    assert {name: steps[name] for name in later} == dict.fromkeys(
        later, ("skipped", "cancelled by the seller")
    )
    assert len(server.uploads) == uploads
    assert not (folder / "outbox").exists()
    assert "sync cancelled by the seller" in ended.named("cycle_finished")[0]["text"]
    assert once(agents, server, folder).named("waiting")  # and no cycle is begun in its place
    assert len(server.cycles()) == 1


def test_a_cancel_stops_a_cycle_that_uploads_nothing(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.plan = {"kind": "pricing", "steps": CHAIN[3:], "skipped": []}
    server.cancel_after = "export/price-updates"
    assert once(agents, server, folder).returncode == 1
    assert the_log(server)[1]["import_prices"] == ("failed", "cancelled by the seller")
    assert not (folder / "outbox").exists()


def test_a_cancel_that_the_worker_honours_ends_the_cycle(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.upload_states = ["queued", "processing", "processing", "cancelled"]
    once(agents, server, folder)
    assert the_log(server)[1]["await_repricing"] == ("failed", "cancelled by the seller")


def a_long_upload(folder: Path) -> bytes:
    """An export that stays large when packed, so that it is sent in many parts; `--interval 0`
    looks up between any two.
    """
    row = b'"%d","Magic","%s","","","","","Near Mint","","","","","1","0","9.99",""\r\n'
    content = HEADER + b"".join(row % (n, os.urandom(100).hex().encode()) for n in range(3000))
    drop(folder, content, "newer.csv")
    os.utime(folder / "inbox" / "newer.csv")
    return content


def test_a_long_upload_keeps_the_lock_fresh(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    content = a_long_upload(folder)
    assert once(agents, server, folder, "--interval", "0").returncode == 0
    assert server.contents() == [content]
    sending = server.calls[
        server.calls.index("POST /api/v1/sync/upload-request") : server.calls.index(PUT)
    ]
    assert sending.count("POST /api/v1/heartbeat") == sending.count("GET /api/v1/sync/pending") > 2


def test_a_cancel_ends_a_long_upload_in_the_middle(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    a_long_upload(folder)
    server.cancel_after = "upload-request"
    assert once(agents, server, folder, "--interval", "0").returncode == 1
    assert the_log(server)[1]["upload_inventory"] == ("failed", "cancelled by the seller")
    assert server.objects == {}


def test_an_upload_without_a_number_that_was_cancelled_is_no_success(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    """The raw form, its answer lost: only the account's status shows how the upload fared."""
    server.key_flow = False
    server.faults = [Fault("POST /api/v1/sync", 0, after=True, whole=True)]
    server.upload_states = ["processing", "cancelled"]
    assert once(agents, server, folder).returncode == 1
    status, steps = the_log(server)
    assert (status, steps["await_repricing"][0]) == ("failed", "failed")
    assert "failed or was cancelled" in (steps["await_repricing"][1] or "")


class LockLost(FakeServer):
    """While the agent sleeps after its upload request, its lock goes stale; `next_holder` takes
    it.
    """

    next_holder: tuple[str, str] | None = None

    def _answer(
        self, method: str, path: str, target: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        answer = super()._answer(method, path, target, headers, content)
        if path.endswith("upload-request"):
            self.holder, self.due = self.next_holder, True
        return answer


SLEEPY = """
import sys
from datetime import timedelta
from cardsync_agent import cli, clock
from cardsync_agent.client import Client
now, upload_request = clock.now, Client.upload_request
def and_sleep(client):
    ticket = upload_request(client)
    clock.now = lambda: now() + timedelta(minutes={minutes})
    return ticket
Client.upload_request = and_sleep
sys.exit(cli.main(sys.argv[1:]))
"""


def run_sleepy(server: FakeServer, folder: Path, minutes: int) -> int:
    """An agent whose computer is suspended for a while: the wall clock goes on (or is set back),
    the monotonic one stands still.
    """
    arguments = ["run", "--once", "--server", server.url, "--key", KEY, "--folder", str(folder)]
    code = SLEEPY.format(minutes=minutes)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=False, timeout=90
    ).returncode


@pytest.mark.first(1)
@pytest.mark.day
@pytest.mark.parametrize("minutes", [10, -10])
def test_a_lock_that_went_stale_while_the_computer_slept_is_no_cancel(
    folder: Path, minutes: int
) -> None:
    with LockLost() as server:
        assert run_sleepy(server, folder, minutes) == 0
        assert the_log(server) == ("success", dict.fromkeys(CHAIN, DONE))


def test_nothing_is_uploaded_under_the_lock_that_another_took_meanwhile(folder: Path) -> None:
    with LockLost() as server:
        server.next_holder = ("another-installation", "scheduled")
        assert run_sleepy(server, folder, 10) == 1
        status, steps = the_log(server)
        assert (status, steps["upload_inventory"]) == (
            "failed",
            ("failed", "interrupted, and not wanted any more: in_progress"),
        )
        assert server.uploads == {}


@pytest.mark.night
def test_an_interrupted_cycle_becomes_what_the_server_wants_now(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.due, server.requested, server.kind = False, True, "orders"
    once(agents, server, folder, kill_at=4, side="after")
    server.cancel()
    server.requested, server.kind = True, "pricing"
    assert once(agents, server, folder).returncode == 0
    assert the_log(server) == ("success", dict.fromkeys(CHAIN, DONE))


# Waiting


def cooldown(status: int, **more: Any) -> Fault:
    return Fault(
        "sync/request",
        status,
        body={"status": "cooldown", "cooldown_remaining_seconds": 3540, **more},
    )


def test_a_cooldown_that_a_credit_may_skip_is_one_sentence(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [cooldown(402, balance=0, top_up_path="/account/credits")]
    ended = once(agents, server, folder, "--request")
    [told] = ended.named("cooldown")
    address = f"{server.url}/account/credits"
    assert (ended.returncode, told["seconds"], told["balance"], told["top_up_url"]) == (
        0,
        3540,
        0,
        address,
    )
    assert told["text"] == (
        "the server wants 59 min of rest before the next manual sync;"
        " skipping the wait costs 1 credit, "
        f"your balance is 0 (top up at {address})"
    )
    assert (server.logs, server.uploads) == ([], {})


def test_a_cooldown_of_a_free_account_is_one_sentence(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [cooldown(429)]
    ended = once(agents, server, folder, "--request")
    [told] = ended.named("cooldown")
    assert (ended.returncode, told["balance"]) == (0, None)
    assert told["text"] == "the server wants 59 min of rest before the next manual sync"


def test_a_cooldown_is_readable_wherever_it_comes(server: FakeServer) -> None:
    server.faults = [
        Fault("status", 429, body={"status": "cooldown", "cooldown_remaining_seconds": 45})
    ]
    with pytest.raises(
        Cooldown, match=r"^the server wants 45 s of rest before the next manual sync$"
    ):
        Client(server.url, KEY).status()


def test_a_rate_limit_is_waited_out(agents: Agents, server: FakeServer, folder: Path) -> None:
    server.faults = [
        Fault("heartbeat", 429, times=2, code="rate_limited", headers={"Retry-After": "0"})
    ]
    ended = once(agents, server, folder)
    assert ended.returncode == 0
    assert len(ended.named("retrying")) == 2
    assert "asked too often" in ended.named("retrying")[0]["reason"]


def test_a_rate_limit_longer_than_its_patience_ends_a_single_run(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [
        Fault("heartbeat", 429, code="rate_limited", headers={"Retry-After": "99999999"})
    ]
    ended = once(agents, server, folder)
    assert ended.returncode == 1
    assert "asked too often (429); it wants 60 min of rest" in ended.named("problem")[0]["text"]
    assert server.calls == ["POST /api/v1/heartbeat"]


# Pictures, versions


class Browser:
    """An adapter that can show what went wrong: `cardsync-agent` with a folder that takes
    pictures.
    """

    CODE = """
import sys
from cardsync_agent import cli
from cardsync_agent.marketplace.folder import FolderMarketplace
from cardsync_agent.marketplace import Shot
def content():
    {body}
def pictures(self, *, of_failure):
    return [Shot(content(), "https://market.example/pricing")] if of_failure else []
FolderMarketplace.pictures = pictures
sys.exit(cli.main(sys.argv[1:]))
"""

    def run(self, server: FakeServer, folder: Path, body: str) -> int:
        arguments = ["run", "--once", "--server", server.url, "--key", KEY, "--folder", str(folder)]
        command = [sys.executable, "-c", self.CODE.format(body=body), *arguments]
        return subprocess.run(
            command, check=False, timeout=90, stdout=subprocess.DEVNULL
        ).returncode


@pytest.mark.night
@pytest.mark.parametrize(
    "fault", [None, Fault("sync/debug", 500), Fault("sync/debug", 413), Fault("sync/debug", 0)]
)
def test_a_failed_step_comes_with_a_picture_if_there_is_one(
    server: FakeServer, folder: Path, fault: Fault | None
) -> None:
    (folder / "inbox" / "export.csv").unlink()
    server.faults = [fault] if fault else []
    assert Browser().run(server, folder, "return b'PNG'") == 1
    [log] = server.cycles().values()
    assert log["status"] == "failed"
    if fault is None:
        [debug] = server.debugs
        assert (debug["sync_cycle_id"], debug["step_name"]) == (
            log["sync_cycle_id"],
            "export_inventory",
        )
        assert base64.b64decode(debug["screenshot"]) == b"PNG"
        assert debug["page_url"] == "https://market.example/pricing"
        assert debug["captured_at"].endswith("Z")
        assert server.calls.index("POST /api/v1/sync/debug") < server.calls.index(
            "POST /api/v1/sync/log"
        )


@pytest.mark.first(1)
@pytest.mark.parametrize("body", ["return bytes(2_000_001)", "raise RuntimeError('no window')"])
def test_no_picture_is_no_trouble(server: FakeServer, folder: Path, body: str) -> None:
    (folder / "inbox" / "export.csv").unlink()
    assert Browser().run(server, folder, body) == 1
    assert (server.debugs, len(server.cycles())) == ([], 1)


def test_a_newer_servers_fields_are_ignored(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.extra = {"mood": {"of": ["the", "day"]}, "has_pending_tasks": True}
    server.plan = {
        "kind": "pricing",
        "steps": CHAIN,
        "skipped": [7, {"why": 1}],
        "error": None,
        "estimate": 3,
    }
    assert once(agents, server, folder).returncode == 0
    assert the_log(server) == ("success", dict.fromkeys(CHAIN, DONE))


def test_an_older_server_knows_no_plan_and_no_approval(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.approved = None
    assert once(agents, server, folder).returncode == 0
    assert server.contents() == [pricing_csv(200)]
    assert server.heartbeats[0]["version"] == __version__
