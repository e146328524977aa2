"""When the agent rests: quiet hours on every side of midnight, and pauses."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync_agent import clock
from cardsync_agent.shops.quiet_hours import Span, quiet_until, read_span
from cardsync_agent.shops.rest import PAUSE_FILE, pause, read_length, read_pause, rest_now, resume

MINUTES = st.integers(0, 24 * 60 - 1)
WALLS = st.datetimes(datetime(2025, 1, 2), datetime(2027, 1, 1))
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def of_day(minute: int) -> time:
    return time(minute // 60, minute % 60)


@pytest.mark.parametrize(
    ("span", "wall", "end"),
    [
        ("22:00-07:00", "21:59", None),
        ("22:00-07:00", "22:00", "2026-11-22 07:00"),
        ("22:00-07:00", "00:30", "2026-11-21 07:00"),
        ("22:00-07:00", "07:00", None),
        ("9:30-12:00", "09:30", "2026-11-21 12:00"),
        ("9:30-12:00", "12:00", None),
        ("12:00-00:00", "23:59", "2026-11-22 00:00"),
    ],
)
def test_a_span(span: str, wall: str, end: str | None) -> None:
    found = read_span(span).end_after(datetime.fromisoformat(f"2026-11-21 {wall}"))
    assert found == (None if end is None else datetime.fromisoformat(end))


@given(st.lists(st.tuples(MINUTES, MINUTES).filter(lambda s: s[0] != s[1]), max_size=4), WALLS)
def test_quiet_hours_end_when_no_span_covers_the_minute(
    spans: list[tuple[int, int]], wall: datetime
) -> None:
    def covered(minute: int) -> bool:
        return any(
            begins <= minute < ends if begins < ends else minute >= begins or minute < ends
            for begins, ends in spans
        )

    quiet = [Span(of_day(begins), of_day(ends)) for begins, ends in spans]
    end = quiet_until(quiet, wall)
    now = wall.hour * 60 + wall.minute
    assert (end is not None) == covered(now)
    if end is None:
        return
    assert wall < end
    passed = wall.replace(second=0, microsecond=0)
    while passed < end:
        assert covered(passed.hour * 60 + passed.minute)
        passed += timedelta(minutes=1)
    # Spans that cover the whole day have no end that would be free.
    if not all(covered(minute) for minute in range(24 * 60)):
        assert not covered(end.hour * 60 + end.minute)


@pytest.mark.parametrize("text", ["", "22-07", "22:00", "24:00-07:00", "22:60-07:00", "8:00-8:00"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(ValueError, match="quiet hours"):
        read_span(text)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1h", timedelta(hours=1)),
        ("4h", timedelta(hours=4)),
        ("24h", timedelta(hours=24)),
        ("30m", timedelta(minutes=30)),
        ("2d", timedelta(days=2)),
        ("on", None),
    ],
)
def test_a_length(text: str, length: timedelta | None) -> None:
    assert read_length(text) == length


@pytest.mark.parametrize("text", ["", "0h", "h", "1 h", "-1h", "99999h", "off", "1w"])
def test_what_is_no_length(text: str) -> None:
    with pytest.raises(ValueError, match="a pause is 1h, 4h, 24h or on"):
        read_length(text)


def test_a_pause_ends_by_itself_or_by_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = NOW
    monkeypatch.setattr(clock, "now", lambda: now)
    assert read_pause(tmp_path) is None
    pause(tmp_path, timedelta(hours=1))
    now += timedelta(minutes=59)
    rest = rest_now(tmp_path, ())
    assert rest is not None
    assert rest.until == NOW + timedelta(hours=1)
    assert "`cardsync-agent resume`" in rest.text
    now += timedelta(minutes=1)
    assert rest_now(tmp_path, ()) is None
    assert not resume(tmp_path)
    pause(tmp_path, None)
    now += timedelta(days=400)
    assert read_pause(tmp_path) is not None
    assert resume(tmp_path)
    assert read_pause(tmp_path) is None


def test_a_pause_that_cannot_be_read_is_a_pause(tmp_path: Path) -> None:
    (tmp_path / PAUSE_FILE).write_text("{")
    rest = read_pause(tmp_path)
    assert rest is not None
    assert rest.until is None


def test_quiet_hours_are_local_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)
    wall = clock.local_wall(NOW)
    span = Span(wall.time(), (wall + timedelta(hours=2)).time())
    rest = rest_now(tmp_path, (span,))
    assert rest is not None
    assert (rest.reason, rest.until) == ("quiet_hours", NOW + timedelta(hours=2))
