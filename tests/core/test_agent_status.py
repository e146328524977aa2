"""The agent's status, folded from its events and put into words, and its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync_agent.commands.checks import clock_look
from cardsync_agent.commands.status_words import Known, lines_of, state_of
from cardsync_agent.events import Reporter
from cardsync_agent.shops.log_file import KEPT, LogFile, last_lines, without_secrets
from cardsync_agent.shops.rest import Rest
from cardsync_agent.shops.status_file import Status, StatusFile, after, read_status

AT = "2026-11-21T08:00:00Z"
NOW = datetime(2026, 11, 21, 8, 0, 10, tzinfo=UTC)
BEGUN = [("cycle_started", "starting a full sync", {}), ("step_started", "", {"step": "fetch_x"})]
Events = list[tuple[str, str, dict[str, object]]]


def folded(events: Events) -> Status:
    status = Status(last_poll=AT, mode="full")
    for event, text, more in events:
        status = after(status, event, text, AT, more)
    return status


IDLE: Events = [("waiting", "waiting: no sync is needed now", {})]


@pytest.mark.parametrize(
    ("events", "state", "first"),
    [
        ([], "started", "starting"),
        ([("waiting", "waiting: no sync is needed now", {})], "waiting", "waiting: no sync"),
        (BEGUN, "working", "starting a full sync: fetch x"),
        (
            [*BEGUN, ("cycle_finished", "sync done after 3 s", {})],
            "waiting",
            "waiting for the next",
        ),
        ([*BEGUN, ("your_turn", "sign in", {})], "your_turn", "YOUR TURN: sign in"),
        (
            [*BEGUN, ("your_turn", "sign in", {}), ("your_turn_ended", "", {})],
            "working",
            "starting a full sync: fetch x",
        ),
        # A sync ends where nobody signs in, and the person's turn stays.
        (
            [*BEGUN, ("your_turn", "sign in", {}), ("cycle_finished", "sync failed", {}), *IDLE],
            "your_turn",
            "YOUR TURN: sign in",
        ),
        ([("waiting", "w", {}), ("retrying", "the server is away", {})], "offline", "w"),
        ([("refused", "the server refuses", {})], "refused", "the server refuses"),
    ],
)
def test_the_status_after_events(events: Events, state: str, first: str) -> None:
    known = Known(runs=True, status=folded(events), rest=None, unfinished=None)
    assert state_of(known) == state
    assert lines_of(known, NOW)[0].startswith(first)


def test_the_lines_say_polls_trouble_and_the_last_end() -> None:
    events: Events = [
        *BEGUN,
        ("cycle_finished", "sync done after 3 s", {}),
        ("update_available", "version 2 of the sync app is available", {}),
        ("retrying", "heartbeat: it cannot be reached; next try in 4 s", {}),
    ]
    status = after(folded(events), "connected", "", AT, {"sync_mode": "read_only"})
    status = after(status, "retrying", "it cannot be reached", AT, {})
    lines = lines_of(Known(True, status, None, None), NOW)
    assert lines[1:] == [
        "trouble: it cannot be reached",
        "the server answered 10 s ago (sync mode read_only)",
        "last: sync done after 3 s (10 s ago)",
        "version 2 of the sync app is available",
    ]


def test_an_ended_agent_says_what_the_next_start_does() -> None:
    rest = Rest("paused", None)
    lines = lines_of(Known(False, folded(BEGUN), rest, "the sync that it began: full"), NOW)
    assert lines[0].startswith("not running")
    assert lines[1] == "the next start goes on with the sync that it began: full"
    assert lines[2].startswith("paused until you say so")


def test_a_pause_waits_for_the_step_that_runs() -> None:
    rest = Rest("paused", NOW + timedelta(hours=1))
    working = Known(True, folded(BEGUN), rest, None)
    assert state_of(working) == "working"
    assert lines_of(working, NOW)[1].startswith("then paused until")
    assert state_of(Known(True, folded([]), rest, None)) == "paused"


def test_the_file_keeps_the_last_end_over_restarts(tmp_path: Path) -> None:
    first = StatusFile(tmp_path)
    first("cycle_finished", "sync done", False, {})
    first.polled()
    first.resting(30)
    status = read_status(tmp_path)
    assert status is not None
    assert status.last_poll is not None
    assert status.next_poll is not None
    assert status.next_poll > status.last_poll
    StatusFile(tmp_path)
    again = read_status(tmp_path)
    assert again is not None
    assert (again.state, again.last_end) == ("started", "sync done")


def test_a_turn_that_ends_is_heard_of(tmp_path: Path) -> None:
    status, say = StatusFile(tmp_path), Reporter(StringIO(), quiet=True)
    with say.heard_by(status, LogFile(tmp_path, "")):
        say.standing("your_turn", "your_turn", "your turn: sign in", problem=True)
        assert (read_status(tmp_path) or Status()).your_turn == "sign in"
        say.ended("your_turn")
        say.ended("your_turn")
    assert (read_status(tmp_path) or Status(your_turn="?")).your_turn is None
    assert len(last_lines(tmp_path, 9)) == 1


def test_a_torn_status_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text('{"pid": 1')
    assert read_status(tmp_path) is None
    assert lines_of(Known(True, None, None, None), NOW) == ["running; what it does is not known"]


@given(st.text(min_size=3, max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_the_log_never_holds_the_key(key: str, before: str, behind: str) -> None:
    masked = without_secrets(before + key + behind, key)
    assert key not in masked or key in "***" + before + behind


@pytest.mark.parametrize(
    "text",
    ["csk_live_1234567", "http://x/o?X-Amz-Signature=1234567", "http://x/?a=1&token=1234567"],
)
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    assert "1234567" not in without_secrets(f"the text {text} goes on", "")
    assert without_secrets(f"the text {text} goes on", "").endswith("goes on")


def test_the_log_is_turned_over_and_read_over_its_files(tmp_path: Path) -> None:
    log = LogFile(tmp_path, "key", most=300)
    for number in range(60):
        log("problem", f"line {number}\nwith the key", number % 2 == 1, {})
    sizes = [path.stat().st_size for path in tmp_path.glob("agent.log*")]
    assert len(sizes) == KEPT + 1
    assert max(sizes) < 400
    newest = last_lines(tmp_path, 10)
    assert [line.split("   ")[-1] for line in newest[::2]] == [
        f"line {number} with the ***" for number in range(50, 60, 2)
    ]
    assert newest[1].endswith("! line 51 with the ***")
    assert last_lines(tmp_path, 0) == []


@pytest.mark.parametrize(
    ("off", "word", "text"),
    [
        (0.0, "ok", "agrees"),
        (-59.0, "ok", "agrees"),
        (240.0, "look", "4 min ahead of"),
        (-7200.0, "look", "2 h behind"),
    ],
)
def test_the_clock(off: float, word: str, text: str) -> None:
    found = clock_look(off)
    assert (found.word, found.name) == (word, "clock")
    assert found.text.startswith(text)
