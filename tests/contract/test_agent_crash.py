"""kill -9 at every point of a cycle: the next start finishes it, and nothing is done twice."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from tests.contract.agent_fake_server import FakeServer, pricing_csv
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import once

POINTS_BY_KEY = 32  # test_the_points_are_all_covered keeps this true
POINTS_RAW = 30
POINT_OF_PLACING = 27
POINT_OF_BEGINNING = 4
# By day it is killed where a price could be placed twice, and where nobody knows of the cycle yet.
DANGEROUS = (POINT_OF_BEGINNING, POINT_OF_PLACING)


def assert_done_once(server: FakeServer, folder: Path) -> None:
    assert [upload["exported_at"] for upload in server.uploads.values()] == ["2023-11-14T22:13:20Z"]
    assert server.contents() == [pricing_csv(200)]
    exports, placed = ([*(folder / name).iterdir()] for name in ("exports", "outbox"))
    assert [path.read_bytes() for path in exports] == [server.prices]
    assert [path.name for path in placed] == [path.name for path in exports]
    [log] = server.cycles().values()
    assert log["status"] == "success"
    assert [step["status"] for step in log["steps"]] == ["success"] * 5
    assert {upload["cycle"] for upload in server.uploads.values()} == {log["sync_cycle_id"]}


@pytest.mark.parametrize(("key_flow", "points"), [(True, POINTS_BY_KEY), (False, POINTS_RAW)])
def test_the_points_are_all_covered(
    agents: Agents, server: FakeServer, folder: Path, key_flow: bool, points: int
) -> None:
    server.key_flow = key_flow
    ended = once(agents, server, folder)
    assert ended.returncode == 0, ended.errors
    assert_done_once(server, folder)
    assert len(ended.points) == points, ended.points
    if key_flow:
        assert ended.points[POINT_OF_PLACING - 1].startswith("write outbox/")
        assert ended.points[POINT_OF_BEGINNING - 1].endswith("state.json")


def points(last: int) -> list[Any]:
    """The dangerous points by day, all of them in the soak, and on both sides."""
    sides = ("before", "after")
    by_day = {(point, "after") for point in DANGEROUS}
    return [
        pytest.param(point, side, marks=[] if (point, side) in by_day else [pytest.mark.night])
        for point in range(1, last + 1)
        for side in sides
    ]


@pytest.mark.parametrize(("point", "side"), points(POINTS_BY_KEY))
def test_a_killed_cycle_is_finished_by_the_next_start_and_done_once(
    agents: Agents, server: FakeServer, folder: Path, point: int, side: str
) -> None:
    assert once(agents, server, folder, kill_at=point, side=side).returncode == -signal.SIGKILL
    ended = once(agents, server, folder)
    assert ended.returncode == 0, ended.errors
    assert_done_once(server, folder)


@pytest.mark.parametrize(("point", "side"), points(POINTS_RAW))
def test_the_raw_form_has_no_key_and_is_still_sent_once(
    agents: Agents, server: FakeServer, folder: Path, point: int, side: str
) -> None:
    server.key_flow = False
    assert once(agents, server, folder, kill_at=point, side=side).returncode == -signal.SIGKILL
    ended = once(agents, server, folder)
    assert ended.returncode == 0, ended.errors
    assert_done_once(server, folder)


def test_it_survives_being_killed_again_and_again(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.upload_states = ["queued"] * 3 + ["done"]
    kills = 0
    while once(agents, server, folder, kill_at=6, side="after").returncode == -signal.SIGKILL:
        kills += 1
    assert kills > 2
    assert_done_once(server, folder)


def test_a_price_file_taken_from_the_outbox_is_not_placed_again(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    once(agents, server, folder, kill_at=POINT_OF_PLACING, side="after")
    [placed] = (folder / "outbox").iterdir()
    placed.unlink()  # the seller's import has read it
    once(agents, server, folder)
    assert [*(folder / "outbox").iterdir()] == []
    [log] = server.cycles().values()
    assert log["status"] == "success"


def test_a_cycle_cancelled_while_the_agent_was_dead_uploads_nothing(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    once(agents, server, folder, kill_at=POINT_OF_BEGINNING, side="after")
    server.cancel()
    ended = once(agents, server, folder)
    assert server.uploads == {}
    [log] = server.cycles().values()
    assert (ended.returncode, log["status"]) == (1, "failed")
    assert "not wanted any more" in log["steps"][0]["error"]
