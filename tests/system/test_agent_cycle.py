"""The real agent against the real server: whole cycles, interrupted in every way, end done once."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_process import Agents, Ended
from tests.system.inventories import inventory
from tests.system.processes import Seller, Server, kill, until

import schedule
from builders import read_csv
from cardsync.platform import clock
from cardsync_agent.client import Client
from cardsync_demo import order_texts as demo_orders

PACE = {
    "SETTLE": "0.1",
    "RETRY_FIRST": "0.1",
    "RETRY_MOST": "0.3",
    "POLL_FIRST": "0.02",
    "POLL_MOST": "0.1",
    "REFUSED": "0.3",
}
FILE = inventory(500)
OPEN_ORDERS = (
    "SELECT id FROM upload WHERE seller_id = %(seller)s AND state IN ('queued', 'processing')"
)
ONE_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FULL = "partial"  # a full sync of a folder with inventory alone: nothing of the orders


@dataclass
class Shop:
    """A seller and the folder of its agent."""

    seller: Seller
    folder: Path

    def put(self, data: bytes, name: str = "export.csv", age: float = 3600) -> Path:
        path = self.folder / "inbox" / name
        path.write_bytes(data)
        os.utime(path, (time.time() - age,) * 2)
        return path

    def arguments(self) -> list[str]:
        return [
            "--server",
            self.seller.server.url,
            "--key",
            self.seller.api_key,
            "--folder",
            str(self.folder),
        ]

    def command(self, *options: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "cardsync_agent",
            "run",
            *self.arguments(),
            "--json-events",
            *options,
        ]

    def once(self, *options: str) -> Ended:
        ended = subprocess.run(
            self.command("--once", *options),
            env=agent_env(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Ended(
            ended.returncode,
            [json.loads(line) for line in ended.stdout.splitlines()],
            [],
            ended.stderr,
        )

    def files(self, name: str) -> list[bytes]:
        folder = self.folder / name
        return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []

    def uploads(self) -> list[dict[str, Any]]:
        return self.seller.sql("SELECT * FROM upload WHERE seller_id = %(seller)s ORDER BY id")

    def cycles(self) -> list[dict[str, Any]]:
        return self.seller.sql("SELECT * FROM sync_cycle WHERE seller_id = %(seller)s ORDER BY id")

    def state(self) -> dict[str, Any]:
        return self.seller.sql("SELECT * FROM sync_state WHERE seller_id = %(seller)s")[0]

    def assert_done_once(self, *, placed: bool = True, status: str = FULL) -> None:
        """One upload, one import, one price file, one log of it, no lock."""
        [upload] = self.uploads()
        assert upload["state"] == "done"
        [cycle] = self.cycles()
        assert (cycle["status"], cycle["placeholder"], cycle["sync_cycle_id"]) == (
            status,
            False,
            upload["sync_cycle_id"],
        )
        [saved] = self.files("exports")
        assert saved == self.seller.get("/api/v1/export/price-updates").content
        assert len(read_csv(saved)) == upload["report"]["changed"] > 100
        assert self.files("outbox") == ([saved] if placed else [])
        state = self.state()
        assert (state["lock_kind"], state["requested_kind"], state["uploads_open"]) == (
            None,
            None,
            0,
        )


def agent_env(**pace: str) -> dict[str, str]:
    return os.environ | {
        f"CARDSYNC_AGENT_PACE_{name}": value for name, value in (PACE | pace).items()
    }


@pytest.fixture
def a_shop(server: Server, tmp_path: Path) -> Callable[..., Shop]:
    def make(name: str = "the shop", **settings: Any) -> Shop:
        folder = tmp_path / name
        (folder / "inbox").mkdir(parents=True)
        return Shop(server.seller(**settings), folder)

    return make


class Running:
    """An agent in its loop; `events` are what it has said so far."""

    def __init__(self, shop: Shop, *options: str, **pace: str) -> None:
        self._out = shop.folder.parent / f"{shop.folder.name}.events"
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(
                shop.command("--interval", "0.3", *options),
                env=agent_env(**pace),
                stdout=out,
                stderr=out,
            )

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def text(self) -> str:
        return self._out.read_text()

    def events(self) -> list[dict[str, Any]]:
        lines = self.text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]

    def said(self, event: str, seconds: float = 180, **fields: Any) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            assert self.process.poll() is None, self.text()
            matching = (
                e for e in self.events() if e["event"] == event and fields.items() <= e.items()
            )
            return next(matching, None)

        return until(found, lambda: f"{event} {fields} in\n{self.text()}", seconds)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def test_a_whole_cycle_in_full_mode(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    path = shop.put(FILE)
    ended = shop.once("--request", "pricing")
    assert ended.returncode == 0, ended.errors
    shop.assert_done_once(status="success")
    [cycle] = shop.cycles()
    assert [(step["name"], step["status"]) for step in cycle["steps"]] == [
        (name, "success")
        for name in (
            "export_inventory",
            "upload_inventory",
            "await_repricing",
            "download_price_updates",
            "import_prices",
        )
    ]
    assert cycle["trigger_source"] == "manual"
    [upload] = shop.uploads()
    assert abs(upload["exported_at"].timestamp() - path.stat().st_mtime) < 1
    assert upload["source_key"]  # the presigned flow
    assert ended.named("upload_done")[0]["report"]["rows"] == len(read_csv(FILE))


@pytest.mark.night
def test_read_only_saves_and_never_places(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop(sync_mode="read_only")
    shop.put(gzip.compress(FILE), "export.csv.gz")
    assert shop.once("--request").returncode == 0
    shop.assert_done_once(placed=False)
    again = shop.once("--request")
    assert again.returncode == 0
    assert again.named("export_empty")[0]["reasons"] == ["not_modified"]
    assert len(shop.files("exports")) == 1


@pytest.mark.night
def test_the_free_plan_gets_no_prices(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop(plan="free")
    shop.put(FILE)
    ended = shop.once("--request")
    assert ended.returncode == 0
    assert ended.named("connected")[0]["sync_mode"] == "read_only"
    assert ended.named("export_empty")[0]["reasons"] == ["not_entitled"]
    assert (shop.files("exports"), shop.files("outbox")) == ([], [])
    assert [upload["state"] for upload in shop.uploads()] == ["done"]
    assert [cycle["status"] for cycle in shop.cycles()] == [FULL]


@pytest.mark.night
def test_an_empty_inbox_is_a_failed_cycle_with_its_reason(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    ended = shop.once("--request")
    assert ended.returncode == 1
    [cycle] = shop.cycles()
    assert cycle["status"] == "failed"
    assert cycle["steps"][0] == cycle["steps"][0] | {
        "name": "export_inventory",
        "status": "failed",
        "error": "no export in inbox",
    }
    assert shop.uploads() == []
    assert shop.state()["lock_kind"] is None


@pytest.mark.night
def test_the_same_file_is_uploaded_again_only_on_request(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    shop.put(FILE)
    assert shop.once().returncode == 0  # the first sync is due at once
    shop.assert_done_once()
    due = (
        "UPDATE sync_state SET last_pricing_at = now() - interval '1 day'"
        " WHERE seller_id = %(seller)s RETURNING seller_id"
    )
    assert shop.seller.sql(due)
    scheduled = shop.once()
    assert scheduled.returncode == 1
    assert "was imported before" in scheduled.named("cycle_finished")[0]["error"]
    assert len(shop.uploads()) == 1
    assert [cycle["status"] for cycle in shop.cycles()] == [FULL, "failed"]
    assert shop.once("--request").returncode == 0
    assert [upload["state"] for upload in shop.uploads()] == ["done", "done"]


@pytest.mark.night
def test_told_to_wait_it_says_why(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop(auto_sync_paused=True)
    shop.seller.sql(
        "UPDATE sync_state SET history_fetched_at = now() WHERE seller_id = %(seller)s RETURNING 1"
    )
    ended = shop.once()
    assert ended.returncode == 0
    assert ended.named("waiting")[0]["reason"] == "auto_sync_paused"
    assert shop.cycles() == []


@pytest.mark.night
def test_raw_fallback_where_the_key_flow_is_off(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop(object_store_pipeline_enabled=False)
    shop.put(FILE)
    assert shop.once("--request").returncode == 0
    shop.assert_done_once()
    assert shop.uploads()[0]["source_key"] is None


def killed_and_rerun(shop: Shop, agents: Agents, point: int, side: str) -> None:
    killed = agents.run(*shop.arguments(), "--once", kill_at=point, side=side)
    assert killed.returncode in (-signal.SIGKILL, 0), killed.errors
    if killed.returncode:
        ended = agents.run(*shop.arguments(), "--once")
        assert ended.returncode == 0, ended.errors + str(ended.events)
    shop.assert_done_once()


# Some of the points that tests/contract/test_agent_crash.py walks through with a server that is
# played; the soak below walks through all of them.
@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("point", "side"),
    [(27, "after"), (3, "after"), (6, "before"), (11, "after"), (15, "after"), (21, "after"), (26, "before")],
)  # fmt: skip
def test_a_killed_agent_finishes_its_cycle_once(
    a_shop: Callable[..., Shop], agents: Agents, point: int, side: str
) -> None:
    shop = a_shop()
    shop.put(FILE)
    killed_and_rerun(shop, agents, point, side)


@pytest.mark.night
@pytest.mark.parametrize("point", [8, 12])
def test_a_killed_agent_in_the_raw_form(
    a_shop: Callable[..., Shop], agents: Agents, point: int
) -> None:
    shop = a_shop(object_store_pipeline_enabled=False)
    shop.put(FILE)
    killed_and_rerun(shop, agents, point, "after")


@pytest.mark.night
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("key_flow", [True, False])
@pytest.mark.parametrize("point", range(1, 40))
def test_an_agent_killed_at_every_point(
    a_shop: Callable[..., Shop], agents: Agents, point: int, key_flow: bool, side: str
) -> None:
    shop = a_shop(object_store_pipeline_enabled=key_flow)
    shop.put(FILE)
    killed_and_rerun(shop, agents, point, side)


def test_the_loop_syncs_by_itself_and_then_on_request(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    shop.put(FILE)
    with Running(shop) as agent:
        agent.said("cycle_started", reason="scheduled")
        agent.said("cycle_finished", status=FULL)
        shop.assert_done_once()
        agent.said("waiting", reason="no_sync_needed")
        shop.put(inventory(500, 2), "newer.csv", age=1800)
        with shop.seller.http() as http:
            assert http.post("/api/v1/sync/request", json={"kind": "full"}).status_code == 200
        agent.said("cycle_started", reason="manual_request")
        until(
            lambda: len([e for e in agent.events() if e["event"] == "cycle_finished"]) == 2,
            "the second cycle",
        )
        assert agent.stop() == 0
    assert [upload["state"] for upload in shop.uploads()] == ["done", "done"]
    assert len(shop.files("exports")) == len(shop.files("outbox")) == 2


@pytest.mark.night
def test_a_kind_that_the_agent_cannot_do_ends_at_once_and_claims_nothing(
    a_shop: Callable[..., Shop],
) -> None:
    shop = a_shop()
    shop.put(FILE)
    assert shop.once("--request", "orders").returncode == 1
    [cycle] = shop.cycles()
    assert (cycle["status"], {step["status"] for step in cycle["steps"]}) == ("failed", {"skipped"})
    assert shop.once().returncode == 0  # the first sync, which would fetch the history
    assert [cycle["status"] for cycle in shop.cycles()] == ["failed", FULL]
    state = shop.state()
    assert (state["lock_kind"], state["requested_kind"], state["history_fetched_at"]) == (
        None,
        None,
        None,
    )


@pytest.mark.night
def test_an_approved_upload_is_done_once_in_read_only_mode(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop(sync_mode="read_only")
    shop.put(FILE)
    assert shop.once().returncode == 0
    assert shop.files("outbox") == []
    approve = "UPDATE account SET upload_approved = true WHERE seller_id = %(seller)s RETURNING 1"
    shop.seller.sql(approve)
    ended = shop.once()
    assert len(ended.named("approved_upload")) == 1
    assert shop.files("outbox") == shop.files("exports")
    assert shop.seller.sql("SELECT upload_approved FROM account WHERE seller_id = %(seller)s") == [
        {"upload_approved": False}
    ]
    assert shop.once().named("approved_upload") == []


@pytest.mark.night
def test_a_plan_is_followed(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop(planner_opt_in=True)
    shop.put(FILE)
    assert shop.once().returncode == 0  # the first sync is a full one
    shop.assert_done_once()
    assert shop.seller.sql(
        "UPDATE sync_state SET last_pricing_at = NULL WHERE seller_id = %(seller)s RETURNING 1"
    )
    assert (
        shop.once().returncode == 1
    )  # what was done is fresh, and for the rest there still is no file
    _, again = shop.cycles()
    assert {step["error"] for step in again["steps"] if step["name"] == "export_inventory"} == {
        "fresh"
    }
    assert len(shop.uploads()) == 1


def test_orders_arrive_whole_although_the_agent_is_killed_between_them(
    a_shop: Callable[..., Shop],
) -> None:
    shop = a_shop()
    shop.put(FILE)
    exported = demo_orders.files(clock.now().date())
    for name, content in exported.items():
        shop.put(content.encode(), name)
    for kind in ("order list", "pull sheet", "refund export"):
        with Running(shop) as agent:
            agent.said("rows_sent", kind=kind)
            agent.process.kill()
            agent.process.wait()
    ended = shop.once()
    assert (ended.returncode, [cycle["status"] for cycle in shop.cycles()]) == (0, ["success"])
    until(lambda: not shop.seller.sql(OPEN_ORDERS), "the orders to be written")
    path = "/api/orders?per_page=200&items=full&page={}"
    orders = [one for n in (1, 2, 3) for one in shop.seller.get(path.format(n)).json()["orders"]]
    assert len(orders) == demo_orders.ORDERS
    assert sum(item["quantity"] for order in orders for item in order["items"]) == sum(
        order["item_count"] for order in orders
    )
    refunds = exported["refunds.csv"].count("\n") - 1
    assert sum(order["refund_amt"] is not None for order in orders) == refunds
    assert len(shop.seller.get("/api/v1/sales_report").json()["reports"]) == 2
    assert shop.state()["history_fetched_at"] is not None
    kept = "".join(
        str(row) for row in shop.seller.sql("SELECT * FROM orders WHERE seller_id = %(seller)s")
    )
    assert "Example Street" not in kept


@pytest.mark.night
def test_one_cycle_with_orders_ends_the_first_sync_and_the_next_takes_the_rolling_window(
    a_shop: Callable[..., Shop],
) -> None:
    """A folder never has refunds or feedback: their steps are skipped in every cycle."""
    shop = a_shop()
    shop.put(FILE)
    listed = demo_orders.files(clock.now().date())["order-list.csv"]
    head, *lines = listed.splitlines(keepends=True)[:40]
    old = (
        f'OLD-1,Ann,"{clock.now().date() - timedelta(days=400):%A, %d %B %Y}",Shipped,Standard,'
        "1.00,1.31,2.31,True\n"
    )
    shop.put("".join([head, old, *lines]).encode(), "orders.csv")
    first = shop.once()
    assert first.named("rows_sent")[0]["older"] == 0
    steps = {step["name"]: step["status"] for step in first.named("cycle_finished")[0]["steps"]}
    assert (steps["fetch_orders"], steps["fetch_refunds"]) == ("success", "skipped")
    again = shop.once("--request", "orders")
    assert again.named("rows_sent")[0]["older"] == 1
    with shop.seller.http() as http:
        assert http.post("/api/v1/sync/request").status_code == 200
        assert http.get("/api/v1/sync/pending").json()["first_sync"] is False


@pytest.mark.night
def test_the_server_takes_the_picture_of_a_failed_step(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    client = Client(shop.seller.server.url, shop.seller.api_key)
    page = "https://market.example/pricing"
    shot = (ONE_PIXEL, page)
    client.send_debug("a-cycle", "export_inventory", "2026-11-21T08:00:00Z", shot)
    client.close()
    [kept] = shop.seller.sql(
        "SELECT step_name, size, page_url FROM debug_screenshot WHERE seller_id = %(seller)s"
    )
    assert tuple(kept.values()) == ("export_inventory", len(ONE_PIXEL), page)


@pytest.mark.night
def test_a_cancelled_sync_stops_before_it_uploads(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop()
    shop.put(FILE, age=0)  # so that the agent waits for the file to rest
    with Running(shop, SETTLE="8") as agent:
        agent.said("step_started", step="export_inventory")
        with shop.seller.http() as http:
            assert http.post("/api/v1/sync/cancel").status_code == 200
        finished = agent.said("cycle_finished", status="failed")
        assert finished["error"] == "cancelled by the seller"
        agent.said("waiting", reason="no_sync_needed")
        assert agent.stop() == 0
    assert shop.uploads() == []
    assert len([e for e in agent.events() if e["event"] == "cycle_started"]) == 1
    assert "cancelled" in {cycle["status"] for cycle in shop.cycles()}


@pytest.mark.night
def test_a_second_agent_in_the_same_folder_is_refused(a_shop: Callable[..., Shop]) -> None:
    shop = a_shop(auto_sync_paused=True)
    with Running(shop) as agent:
        agent.said("connected")
        second = shop.once()
        assert second.returncode == 1
        assert "already works in" in second.errors


@pytest.mark.parametrize(
    "event",
    [
        ("uploaded", {}),
        pytest.param(("step_started", {"step": "upload_inventory"}), marks=pytest.mark.night),
    ],
    ids=lambda e: e[0],
)
@pytest.mark.night
def test_the_server_restarts_in_the_middle_of_a_cycle(
    a_shop: Callable[..., Shop], event: tuple[str, dict[str, str]]
) -> None:
    shop = a_shop()
    shop.put(inventory(3000))
    server = shop.seller.server
    with Running(shop) as agent:
        agent.said(event[0], **event[1])
        assert server.stop() == 0
        until(lambda: any(e["event"] == "retrying" for e in agent.events()), "a try that fails")
        server.start()
        agent.said("cycle_finished", status=FULL)
        assert agent.stop() == 0
    shop.assert_done_once()


@pytest.mark.parametrize("key_flow", [True, False])
@pytest.mark.parametrize(
    "rounds",
    [1, pytest.param(schedule.count("CARDSYNC_SOAK_ROUNDS", 30, 3), marks=pytest.mark.night)],
)
@pytest.mark.night
def test_the_web_process_is_killed_while_the_file_is_sent(
    a_shop: Callable[..., Shop], key_flow: bool, rounds: int
) -> None:
    """The answer is lost, and nobody knows whether the request was done: it is done once all the
    same.
    """
    for n in range(rounds):
        shop = a_shop(f"shop {n}", object_store_pipeline_enabled=key_flow)
        shop.put(inventory(1500))
        server = shop.seller.server
        until(
            lambda server=server: len(server.children("web")) == server.webs and server.ready(),
            "the web process",
        )  # type: ignore[misc]
        with Running(shop) as agent:
            agent.said("step_started", step="upload_inventory")
            time.sleep(n * 0.4 / rounds)  # the moment is what is tested
            kill(*server.children("web"))
            agent.said("cycle_finished", status=FULL)
            assert agent.stop() == 0
        until(server.ready, "the next web process")
        shop.assert_done_once()
