"""The server's tasks: the agent claims them, carries each out in its folder, and reports how it
ended, once whatever kills it.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.contract.agent_fake_server import HEADER, FakeServer, Fault
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import once
from tests.contract.test_agent_crash import points
from tests.contract.test_agent_orders import orders, put, sheet

from cardsync_agent.card_failures import CardFailures, without_cards
from cardsync_agent.state import HOME
from cardsync_agent.tasks import STEPS_OF_TASK, TASK_KINDS

POINTS = 17  # test_the_kills_cover_the_task keeps this true
LISTING = (
    b'"%d","Magic","Alpha","Lotus","","1","R","Near Mint","9.00","","","","0","2","9.99",""\r\n'
)


@pytest.fixture
def idle(server: FakeServer) -> FakeServer:
    """A server that wants no sync."""
    server.due = False
    return server


def outbox(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "outbox").glob("*.csv"))]


def the_outcome(server: FakeServer) -> dict[str, object]:
    [(_, outcome)] = server.outcomes
    return {name: value for name, value in outcome.items() if name != "claim_token"}


def test_a_price_push_is_placed_and_completed(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    task_id = idle.add_task("apply_price_updates")
    ended = once(agents, idle, folder)
    assert ended.returncode == 0, ended.errors
    assert outbox(folder) == [idle.prices]
    [(ended_id, outcome)] = idle.outcomes
    assert (ended_id, outcome["status"]) == (task_id, "completed")
    assert outcome["result"]["rows"] == 3
    assert idle.logs == []  # a task is no cycle of the sync
    assert [event["kind"] for event in ended.named("task_started")] == ["apply_price_updates"]
    assert [event["status"] for event in ended.named("task_ended")] == ["completed"]


def test_several_tasks_are_worked_off_in_one_round(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    put(folder, list=orders(2, 900), sheet=sheet(0))
    refresh, backfill = idle.add_task("refresh_orders"), idle.add_task("backfill_orders")
    once(agents, idle, folder)
    assert [(id, outcome["status"]) for id, outcome in idle.outcomes] == [
        (refresh, "completed"),
        (backfill, "completed"),
    ]
    recent, all_years = idle.rows["orders"]
    assert [row["order_number"] for row in recent] == ["A-0"]
    assert [row["order_number"] for row in all_years] == ["A-0", "A-1"]


def test_a_task_without_a_file_fails_and_says_which(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    idle.add_task("refresh_orders")
    ended = once(agents, idle, folder)
    assert ended.returncode == 1
    outcome = the_outcome(idle)
    assert (outcome["status"], outcome["retryable"]) == ("failed", False)
    assert outcome["error"]["code"] == "nothing_there"  # type: ignore[index]
    assert "order list" in outcome["error"]["message"]  # type: ignore[index]


def test_a_failed_step_may_be_tried_again(agents: Agents, idle: FakeServer, folder: Path) -> None:
    put(folder, list=orders(2))
    idle.row_states = ["failed"]
    idle.add_task("refresh_orders")
    assert once(agents, idle, folder).returncode == 1
    outcome = the_outcome(idle)
    assert (outcome["status"], outcome["retryable"]) == ("failed", True)


def test_every_kind_of_task_is_known_and_ends(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    ids = [idle.add_task(kind) for kind in TASK_KINDS]
    once(agents, idle, folder)
    assert [id for id, _ in idle.outcomes] == ids
    assert set(STEPS_OF_TASK) == {
        "refresh_orders", "backfill_orders", "backfill_sales_report", "apply_price_updates",
        "apply_rollback", "quick_add_listing", "refresh_account",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "served", "is_placed"),
    [
        ("apply_price_updates", "price_updates", False),
        ("apply_rollback", "rollback", True),
        ("apply_rollback", "price_updates", False),
        ("quick_add_listing", "quick_add", True),
        ("quick_add_listing", "price_updates", False),
    ],
)
def test_in_read_only_only_what_the_seller_asked_for_is_placed(
    agents: Agents, idle: FakeServer, folder: Path, kind: str, served: str, is_placed: bool
) -> None:
    idle.sync_mode, idle.export_kind = "read_only", served
    idle.add_task(kind)
    once(agents, idle, folder)
    assert bool(outbox(folder)) is is_placed
    assert len([*(folder / "exports").iterdir()]) == 1


def test_the_same_listings_are_placed_once_however_often_they_are_served(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    idle.prices = HEADER + LISTING % 7  # an older server does not name the kind of file
    for _ in range(2):
        idle.add_task("quick_add_listing")
        once(agents, idle, folder)
    assert outbox(folder) == [idle.prices]
    assert [outcome["status"] for _, outcome in idle.outcomes] == ["completed"] * 2
    idle.prices += LISTING % 8
    idle.add_task("quick_add_listing")
    once(agents, idle, folder)
    assert len(outbox(folder)) == 2


def points_of_a_task(agents: Agents, server: FakeServer, folder: Path) -> list[str]:
    server.add_task("quick_add_listing")
    return once(agents, server, folder).points


@pytest.mark.parametrize(("point", "side"), points(POINTS))
def test_a_killed_task_is_finished_and_nothing_is_placed_twice(
    agents: Agents, idle: FakeServer, folder: Path, point: int, side: str
) -> None:
    idle.prices, idle.export_kind = HEADER + LISTING % 7, "quick_add"
    idle.add_task("quick_add_listing")
    ended = once(agents, idle, folder, kill_at=point, side=side)
    assert ended.returncode == -signal.SIGKILL, ended.points
    once(agents, idle, folder)
    # A claim whose answer was lost runs out, and the task is offered again.
    idle.expire_claims() if not idle.outcomes else None
    once(agents, idle, folder)
    assert outbox(folder) == [idle.prices]
    assert {outcome["status"] for _, outcome in idle.outcomes} == {"completed"}


def test_the_kills_cover_the_task(agents: Agents, idle: FakeServer, folder: Path) -> None:
    idle.prices, idle.export_kind = HEADER + LISTING % 7, "quick_add"
    assert len(points_of_a_task(agents, idle, folder)) == POINTS


def test_a_claim_that_ran_out_is_told_and_done_again(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    idle.add_task("apply_price_updates")
    idle.faults = [Fault("PATCH", 409, code="claim_expired")]
    ended = once(agents, idle, folder)
    assert any("claim_expired" in event["text"] for event in ended.named("problem"))
    idle.expire_claims()
    once(agents, idle, folder)
    assert [outcome["status"] for _, outcome in idle.outcomes] == ["completed"]


def test_an_older_server_tells_of_tasks_and_hands_none_out(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    idle.extra = {"has_pending_tasks": True}
    idle.faults = [Fault("tasks/claim", 404, times=99)]
    assert once(agents, idle, folder).returncode == 0


def test_a_card_that_was_refused_three_times_is_left_out_and_told(
    agents: Agents, idle: FakeServer, folder: Path
) -> None:
    failures = CardFailures(folder / HOME)
    once(agents, idle, folder)
    for number in range(3):
        assert failures.paused() == frozenset()
        failures.note(f"file-{number}.csv", [1], {2: "price too low"})
        failures.note(f"file-{number}.csv", [1], {2: "price too low"})  # repeated, counted once
    assert failures.paused() == {2}

    idle.add_task("apply_price_updates")
    ended = once(agents, idle, folder)
    [placed] = outbox(folder)
    assert placed == without_cards(idle.prices, [2])[0]
    assert placed.count(b"\r\n") == 3
    assert [event["cards"] for event in ended.named("cards_paused")] == [[2]]
    [(_, outcome)] = idle.outcomes
    assert outcome["result"]["paused"] == [2]
    assert "2" in outcome["result"]["steps"][1]["error"]

    failures.note("file-4.csv", [2], {})  # the marketplace took it
    assert failures.paused() == frozenset()


def test_the_records_of_refused_cards_survive_a_damaged_file(folder: Path) -> None:
    (folder / HOME).mkdir()
    failures = CardFailures(folder / HOME)
    assert failures.note("a.csv", [], {5: "no such card"}) == frozenset()
    assert json.loads((folder / HOME / "card-failures.json").read_text())["5"]["count"] == 1
    assert failures.resume(None) == []
    assert failures.all() == {}


def test_rows_with_line_ends_in_a_field_are_left_out_whole() -> None:
    content = b'id,name\r\n"1","a\r\nb"\r\n"2","c"\r\n'
    assert without_cards(content, [1]) == (b'id,name\r\n"2","c"\r\n', [1])
    assert without_cards(content, [9]) == (content, [])
