"""The one upload that a seller approves: the newest saved price file, once, whatever kills the
agent, and the flag cleared after it.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.contract.agent_fake_server import FakeServer, Fault
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import once

POINTS = 9  # test_the_points_are_all_covered keeps this true
POINT_OF_PLACING = 5
NEWEST = "price-updates-20261121T080000Z-10.csv"
CLEAR = "DELETE /api/v1/sync/approve_upload"


@pytest.fixture
def exports(folder: Path, server: FakeServer) -> Path:
    """Price files of four syncs; the approval is given, and nothing else is to be done."""
    place = folder / "exports"
    place.mkdir()
    for name in (
        "20261121T075959Z",
        "20261121T080000Z",
        "20261121T080000Z-9",
        "20261121T080000Z-10",
    ):
        (place / f"price-updates-{name}.csv").write_text(name)
    (place / "price-updates-notes.csv").write_text("the seller's own")
    (place / ".price-updates-20991121T080000Z.csv.part").write_text("half")
    server.due, server.approved, server.sync_mode = False, True, "read_only"
    return place


def placed(folder: Path) -> list[str]:
    outbox = folder / "outbox"
    return (
        sorted(path.name for path in outbox.iterdir() if path.name[0] != ".")
        if outbox.exists()
        else []
    )


def take_away(folder: Path) -> int:
    """The seller's import has read the outbox; how many files there were."""
    names = placed(folder)
    for name in names:
        (folder / "outbox" / name).unlink()
    return len(names)


def test_the_newest_file_is_uploaded_and_the_flag_cleared(
    agents: Agents, server: FakeServer, folder: Path, exports: Path
) -> None:
    ended = once(agents, server, folder)
    assert ended.returncode == 0
    assert placed(folder) == [NEWEST]
    assert (folder / "outbox" / NEWEST).read_text() == "20261121T080000Z-10"
    assert server.approved is False
    assert ended.named("approved_upload")[0]["file"] == NEWEST
    assert take_away(folder) == 1
    once(agents, server, folder)
    assert (placed(folder), server.calls.count(CLEAR)) == ([], 1)
    server.approved = True  # a second approval is a second upload
    once(agents, server, folder)
    assert placed(folder) == [NEWEST]


def test_the_points_are_all_covered(
    agents: Agents, server: FakeServer, folder: Path, exports: Path
) -> None:
    points = once(agents, server, folder).points
    assert len(points) == POINTS, points
    assert points[POINT_OF_PLACING - 1] == f"write outbox/{NEWEST}"
    assert points[-3] == CLEAR


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_killed_anywhere_it_uploads_once(
    agents: Agents, server: FakeServer, folder: Path, exports: Path, point: int, side: str
) -> None:
    assert once(agents, server, folder, kill_at=point, side=side).returncode == -signal.SIGKILL
    times = take_away(folder)
    (exports / "price-updates-20261121T090000Z.csv").write_text("came meanwhile")
    assert once(agents, server, folder).returncode == 0
    assert times + take_away(folder) == 1
    assert server.approved is False
    assert once(agents, server, folder).returncode == 0
    assert placed(folder) == []


def test_without_a_file_it_waits_for_one_and_does_not_clear(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.approved, server.sync_mode = True, "read_only"
    ended = once(agents, server, folder)  # the cycle saves the first price file
    assert len(ended.named("approval_waits")) == 1
    assert (server.approved, placed(folder)) == (True, [])
    once(agents, server, folder)
    assert (server.approved, len(placed(folder))) == (False, 1)


def test_a_flag_that_cannot_be_cleared_does_not_repeat_the_upload(
    agents: Agents, server: FakeServer, folder: Path, exports: Path
) -> None:
    server.faults = [Fault(CLEAR, 404, times=2, code="not_found", whole=True)]
    for times in (1, 0, 0):
        once(agents, server, folder)
        assert take_away(folder) == times
    assert server.approved is False


def test_an_outage_while_clearing_is_waited_out(
    agents: Agents, server: FakeServer, folder: Path, exports: Path
) -> None:
    server.faults = [Fault(CLEAR, 0, times=2, after=True, whole=True)]
    assert once(agents, server, folder).returncode == 0
    assert (server.approved, placed(folder)) == (False, [NEWEST])


def test_an_approval_taken_back_before_the_upload_is_left(
    agents: Agents, server: FakeServer, folder: Path, exports: Path
) -> None:
    once(agents, server, folder, kill_at=POINT_OF_PLACING, side="before")
    server.approved = False
    ended = once(agents, server, folder)
    assert (placed(folder), len(ended.named("approval_gone"))) == ([], 1)
    server.approved = True
    once(agents, server, folder)
    assert placed(folder) == [NEWEST]


def test_a_place_that_cannot_be_written_is_told_and_tried_again(
    agents: Agents, server: FakeServer, folder: Path, exports: Path
) -> None:
    (folder / "outbox").write_text("in the way")
    ended = once(agents, server, folder)
    assert "could not be done" in ended.named("problem")[0]["text"]
    assert server.approved is True
    (folder / "outbox").unlink()
    once(agents, server, folder)
    assert (server.approved, placed(folder)) == (False, [NEWEST])


def test_a_forced_update_comes_first(
    agents: Agents, server: FakeServer, folder: Path, exports: Path
) -> None:
    server.force_update = True
    once(agents, server, folder)
    assert (server.approved, placed(folder)) == (True, [])
