"""The agent's journal: whole after any crash, readable across versions, one agent a folder.

And what a cycle's journal adds up to.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cardsync_agent import durable
from cardsync_agent.client import Decision
from cardsync_agent.report import report_of, verdict
from cardsync_agent.state import (
    MOST_IMPORTED,
    Part,
    Sent,
    StateProblem,
    StepRecord,
    Store,
    only_agent,
)
from cardsync_agent.steps import begin

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
THE_REST = [
    *("fetch_orders", "fetch_order_items", "fetch_shipping", "fetch_refunds", "fetch_feedback"),
    *("fetch_sales_report", "refresh_account"),
]
CHAIN = [
    "export_inventory",
    "upload_inventory",
    "await_repricing",
    "download_price_updates",
    "import_prices",
]


def decision(kind: str = "full", **more: object) -> Decision:
    return Decision("sync", "scheduled", kind=kind, **more)  # type: ignore[arg-type]


def test_what_was_saved_is_remembered(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.memory.cycle = begin(decision(), "full", NOW)
    store.memory.cycle.steps.append(StepRecord("export_inventory", "success", 12))
    store.memory.remember_import("abc", NOW)
    file = Sent("order list", "def", "2026-08-23")
    store.memory.remember_sent(file, ())
    store.memory.cycle.part, store.memory.cycle.delivered = Part(file, 2, [7, 8]), [file]
    store.save()
    assert Store(tmp_path).memory == store.memory


def test_what_was_not_saved_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save()
    store.memory.etag = "later"
    assert Store(tmp_path).memory.etag is None
    assert Store(tmp_path).memory.agent_id == store.memory.agent_id


def test_a_crash_in_the_middle_of_a_save_leaves_the_journal_before(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save()
    (store.home / ".state.json.part").write_text('{"agent_id": "half wri')
    assert Store(tmp_path).memory.agent_id == store.memory.agent_id


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"cycle": 3}', '{"agent_id": "a", "cycle": {"kind": "full"}}']
)
def test_an_unreadable_journal_is_set_aside(tmp_path: Path, content: str) -> None:
    home = Store(tmp_path).home
    (home / "state.json").write_text(content)
    store = Store(tmp_path)
    assert store.set_aside
    assert store.set_aside.read_text() == content
    store.save()
    assert Store(tmp_path).set_aside is None


def test_a_newer_agents_journal_is_readable(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.memory.cycle = begin(decision(), "full", NOW)
    store.save()
    body = json.loads((store.home / "state.json").read_text())
    body["new"] = body["cycle"]["new"] = 1
    (store.home / "state.json").write_text(json.dumps(body))
    assert Store(tmp_path).memory == store.memory


def test_the_hashes_are_bounded_and_belong_to_one_server(tmp_path: Path) -> None:
    memory = Store(tmp_path).memory
    memory.belong_to("https://a.example")
    for number in range(MOST_IMPORTED + 5):
        memory.remember_import(str(number), NOW)
    memory.remember_import("7", NOW)
    assert len(memory.imported) == MOST_IMPORTED
    assert {"7", "204"} <= memory.hashes()
    assert "0" not in memory.hashes()
    memory.belong_to("https://a.example")
    assert memory.hashes()
    memory.belong_to("https://b.example")
    assert not memory.hashes()


def test_a_wider_window_makes_a_file_new_and_new_orders_what_hangs_on_them(tmp_path: Path) -> None:
    memory = Store(tmp_path).memory
    memory.remember_sent(Sent("pull sheet", "b", "2026-08-23"), ())
    memory.remember_sent(Sent("order list", "a", "2026-08-23"), {"pull sheet"})
    assert memory.has_sent(Sent("order list", "a", "2026-08-24"))
    assert not memory.has_sent(Sent("order list", "a", "2020-01-01"))
    assert not memory.has_sent(Sent("shipping export", "a", "2026-08-24"))
    assert not memory.has_sent(Sent("pull sheet", "b", "2026-08-24"))
    memory.belong_to("https://a.example")
    memory.belong_to("https://b.example")
    assert memory.sent == []


def test_a_second_agent_is_kept_out_until_the_first_ends(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from cardsync_agent.state import only_agent\n"
        "with only_agent(pathlib.Path(sys.argv[1])): print('mine', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first:
        assert first.stdout
        assert first.stdout.readline() == b"mine\n"
        with pytest.raises(StateProblem, match="Another cardsync-agent"), only_agent(tmp_path):
            pass
        first.kill()
    with only_agent(tmp_path):
        pass


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateProblem, match="cannot use the folder"):
        Store(tmp_path / "file")


def test_a_file_is_placed_once_although_the_reader_took_it(tmp_path: Path) -> None:
    target, noted = tmp_path / "outbox" / "prices.csv", []
    durable.place(
        target, lambda: b"prices", staged=False, note_staged=lambda: noted.append(target.exists())
    )
    assert target.read_bytes() == b"prices"
    assert noted == [False]
    target.unlink()
    durable.place(target, lambda: b"prices", staged=True, note_staged=lambda: noted.append(True))
    assert not target.exists()
    assert durable.is_placed(target, staged=True)


@pytest.mark.parametrize(
    ("asked", "mode", "steps"),
    [
        (decision(), "full", [*CHAIN, *THE_REST]),
        (decision("pricing"), "full", CHAIN),
        (decision("something new"), "full", [*CHAIN, *THE_REST]),
        (decision("pricing"), "read_only", CHAIN[:-1]),
        (decision("orders"), "full", ["fetch_orders", "fetch_order_items", "fetch_shipping"]),
        (decision("feedback"), "full", ["fetch_orders", "fetch_feedback"]),
        (decision("sales"), "full", ["fetch_sales_report"]),
        (decision("refunds"), "full", ["fetch_orders", "fetch_refunds"]),
        (decision("account"), "read_only", ["refresh_account"]),
        (
            decision(
                plan_steps=(
                    "fetch_orders",
                    "download_price_updates",
                    "import_prices",
                    "fetch_orders",
                )
            ),
            "full",
            ["fetch_orders", "download_price_updates", "import_prices"],
        ),
        (
            decision(
                plan_steps=("import_prices", "fetch_orders"), plan_skipped={"fetch_orders": "fresh"}
            ),
            "read_only",
            [],
        ),
        (decision(plan_steps=()), "full", []),
    ],
)
def test_a_decision_becomes_steps(asked: Decision, mode: str, steps: list[str]) -> None:
    assert begin(asked, mode, NOW).planned == steps


def test_steps_that_the_plan_leaves_out_are_reported_skipped() -> None:
    cycle = begin(
        decision(plan_steps=("refresh_account",), plan_skipped={"fetch_orders": "fresh"}),
        "full",
        NOW,
    )
    assert report_of(cycle, "linux/x")["steps"] == [
        {"name": "fetch_orders", "status": "skipped", "duration_ms": 0, "error": "fresh"}
    ]


@pytest.mark.parametrize(
    ("imported", "review", "failed", "status", "with_unable"),
    [
        (False, False, None, "success", "partial"),
        (True, False, None, "success", "partial"),
        (True, True, None, "partial", "partial"),
        (True, True, "await_repricing", "partial", "partial"),
        (True, False, "download_price_updates", "partial", "partial"),
        (False, False, "upload_inventory", "failed", "failed"),
    ],
)
def test_steps_add_up_to_a_status(
    imported: bool, review: bool, failed: str | None, status: str, with_unable: str
) -> None:
    cycle = begin(decision(), "full", NOW)
    cycle.imported, cycle.needs_review = imported, review
    cycle.steps = [StepRecord(name, "failed" if name == failed else "success", 1) for name in CHAIN]
    assert verdict(cycle) == status
    cycle.unable = ["fetch_orders"]
    assert verdict(cycle) == with_unable
    cycle.unable, cycle.lacking = [], ["fetch_orders"]
    assert verdict(cycle) == with_unable
    cycle.steps.append(StepRecord("fetch_orders", "success", 1))
    assert verdict(cycle) != "failed"
    cycle.over = "cancelled"
    assert verdict(cycle) == ("partial" if imported else "failed")


@pytest.mark.parametrize(
    ("steps", "unable", "status"),
    [
        ([("fetch_orders", "skipped")], ["fetch_orders"], "failed"),
        (
            [("export_inventory", "skipped"), ("fetch_orders", "skipped")],
            ["fetch_orders"],
            "failed",
        ),
        (
            [("refresh_account", "success"), ("fetch_orders", "skipped")],
            ["fetch_orders"],
            "partial",
        ),
        ([("fetch_orders", "skipped")], [], "success"),  # fresh
        (
            [],
            [],
            "failed",
        ),  # with success, the server would take a history as fetched that nobody fetched
    ],
)
def test_what_was_not_done_is_no_success(
    steps: list[tuple[str, str]], unable: list[str], status: str
) -> None:
    cycle = begin(decision(), "full", NOW)
    cycle.steps, cycle.unable = [StepRecord(name, how, 0) for name, how in steps], unable
    assert verdict(cycle) == status
