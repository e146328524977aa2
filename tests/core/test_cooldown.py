"""The cooldown: how long it lasts, and whom it binds."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.access.entitlements import is_paid
from cardsync.agents.sync.cooldown import meets, remaining_seconds, whole_seconds
from cardsync.platform.limits import PLANS

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("ended_ago", "expected"),
    [
        (None, 0),
        (timedelta(), 3600),
        (TICK, 3600),
        (timedelta(seconds=1), 3599),
        (timedelta(seconds=1, microseconds=1), 3599),
        (timedelta(seconds=3599), 1),
        (HOUR - TICK, 1),
        (HOUR, 0),
        (HOUR + TICK, 0),
        (timedelta(days=4000), 0),
        (-TICK, 3600),  # the host that ended the cycle is ahead of us
        (-timedelta(days=1), 3600),
    ],
)
def test_remaining_seconds(ended_ago, expected):
    ended = None if ended_ago is None else NOW - ended_ago
    assert remaining_seconds(ended, HOUR, NOW) == expected


def test_a_cooldown_of_nothing_never_binds():
    assert remaining_seconds(NOW, timedelta(), NOW) == 0
    assert remaining_seconds(NOW + HOUR, timedelta(), NOW) == 0


moments = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
spans = st.timedeltas(timedelta(), timedelta(days=2))


@given(ended=moments, cooldown=spans, later=spans)
def test_inside_it_is_never_0_and_waiting_that_long_ends_it(ended, cooldown, later):
    now = ended + later
    remaining = remaining_seconds(ended, cooldown, now)
    assert (remaining > 0) == (later < cooldown)
    assert remaining_seconds(ended, cooldown, now + timedelta(seconds=remaining)) == 0
    if remaining:
        assert remaining_seconds(ended, cooldown, now + timedelta(seconds=remaining - 1)) == 1


@given(ended=st.none() | moments, cooldown=spans, now=moments)
def test_it_lasts_no_longer_than_it_is_long(ended, cooldown, now):
    assert 0 <= remaining_seconds(ended, cooldown, now) <= whole_seconds(cooldown)


# Every account inside the cooldown with the metering flag off: (plan, trial's end, what it meets).
FLAG_OFF = [
    ("free", None, "free"),
    ("trial", NOW, "free"),
    ("trial", NOW - HOUR, "free"),
    ("trial", NOW + TICK, "nothing"),
    ("trial", None, "nothing"),
    ("paid", None, "nothing"),
    ("complimentary", None, "nothing"),
    ("founder", None, "nothing"),
]


@pytest.mark.parametrize(("plan", "trial_ends_at", "expected"), FLAG_OFF)
def test_with_the_flag_off_only_free_accounts_wait(plan, trial_ends_at, expected):
    paid = is_paid(plan, trial_ends_at, NOW)
    assert meets(1, metering=False, paid=paid) == expected
    assert meets(1, metering=True, paid=paid) == "metered"


def test_every_plan_is_in_the_table():
    assert {plan for plan, _, _ in FLAG_OFF} == set(PLANS)


@pytest.mark.parametrize(("metering", "paid"), list(product([True, False], repeat=2)))
def test_outside_the_cooldown_nobody_waits(metering, paid):
    assert meets(0, metering=metering, paid=paid) == "nothing"
