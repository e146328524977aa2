"""When a backup is due, and which ones are kept: 7 days, 4 weeks, 12 months."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform.backups import backup_reports, backup_schedule
from cardsync.platform.backups.backup_folder import moment_of, name_of

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("newest", "failed", "due"),
    [
        (None, None, True),
        (timedelta(hours=23), None, False),
        (timedelta(hours=24), None, True),
        (timedelta(days=3), timedelta(minutes=59), False),
        (timedelta(days=3), timedelta(hours=1), True),
    ],
)
def test_a_backup_is_due_a_day_after_the_last_and_an_hour_after_a_failure(newest, failed, due):
    made_at, failed_at = (NOW - ago if ago is not None else None for ago in (newest, failed))
    assert backup_schedule.is_due(NOW, made_at, failed_at) is due


@pytest.mark.parametrize(("days", "unproven"), [(0, False), (3, False), (4, True)])
def test_backups_without_a_rehearsal_are_wrong_after_three_days(days, unproven):
    rows = [
        ("backup", NOW, None, None, 1),
        ("rehearsal", NOW - timedelta(days=days), None, None, 0),
    ]
    wrong = backup_reports.state_of(rows, NOW).wrong
    assert (wrong is not None) is unproven
    if wrong:
        assert wrong == "No backup has passed a restore test since November 22"


def test_a_year_of_daily_backups_leaves_days_weeks_and_months():
    made = [NOW - timedelta(days=days) for days in range(400)]
    kept = sorted(backup_schedule.kept(made), reverse=True)
    assert kept[:7] == made[:7]
    assert len({at.isocalendar()[:2] for at in kept}) >= 4
    assert {(at.year, at.month) for at in kept} >= {(at.year, at.month) for at in made[:330]}
    assert len(kept) <= 7 + 4 + 12


def test_backups_that_were_made_on_one_day_are_all_kept_for_a_day():
    made = [NOW - timedelta(hours=hours) for hours in (0, 1, 5, 23)]
    assert backup_schedule.kept(made) == set(made)
    later = {NOW + timedelta(days=2)}
    assert backup_schedule.kept([*made, *later]) == {NOW, made[3], *later}


@given(st.lists(st.integers(0, 800), max_size=60), st.integers(0, 30))
def test_what_is_kept_stays_kept_until_enough_newer_ones_are_there(days, more):
    made = {NOW - timedelta(days=day) for day in days}
    kept = backup_schedule.kept(made)
    assert kept <= made
    assert backup_schedule.kept(kept) == kept
    if made:
        assert max(made) in kept
    newer = {NOW + timedelta(days=1 + day) for day in range(more)}
    assert backup_schedule.kept(kept | newer) == backup_schedule.kept(made | newer)


def test_a_backup_is_named_by_its_time():
    assert name_of(NOW) == "2026-11-26T120000Z"
    assert moment_of(name_of(NOW)) == NOW
    assert moment_of("holiday-pictures") is None
