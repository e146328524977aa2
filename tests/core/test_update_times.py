"""The night at which catalogs are updated: the last one that is over, in the zone of the shop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.update_times import NIGHT, Updates, last_night

ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Pacific/Auckland")


@pytest.mark.parametrize(
    ("now", "night"),
    [
        ("2026-11-24T08:59:00+00:00", "2026-11-23T04:00:00-05:00"),
        ("2026-11-24T09:00:00+00:00", "2026-11-24T04:00:00-05:00"),
        ("2026-11-24T23:00:00+00:00", "2026-11-24T04:00:00-05:00"),
    ],
)
def test_it_is_the_last_night_of_the_zone(now, night):
    found = last_night(datetime.fromisoformat(now), "America/New_York")
    assert found == datetime.fromisoformat(night)


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(ZONES),
)
def test_a_night_is_over_and_less_than_a_day_and_the_clocks_hour_ago(now, zone):
    night = last_night(now, zone)
    assert night.astimezone(ZoneInfo(zone)).time() == NIGHT
    assert timedelta(0) <= now - night < timedelta(hours=26)


def test_without_a_choice_the_setting_says_when():
    now = datetime(2026, 11, 24, 12, tzinfo=UTC)
    assert Updates(7).due_before(now) == now - timedelta(days=7)
    assert Updates(0).due_before(now) is None
    assert Updates(1, "UTC").due_before(now) == datetime(2026, 11, 24, 4, tzinfo=UTC)
