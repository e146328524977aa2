"""A moment that a wrong clock wrote holds nobody up for longer than a right one could."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import lease_is_live
from cardsync.platform.settings import Settings
from cardsync.platform.work.setbacks import LONGEST_PAUSE, Tries
from cardsync.platform.work.streams import Due

NOW = datetime(2026, 11, 26, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ends", "live"),
    [
        (None, False),
        (timedelta(0), False),
        (timedelta(seconds=1), True),
        (timedelta(minutes=5), True),
        (timedelta(hours=1), False),
        (timedelta(days=40), False),
    ],
)
def test_a_lease_of_a_clock_that_was_ahead_is_not_live(ends, live):
    state = SyncState(lease_expires_at=None if ends is None else NOW + ends)
    assert lease_is_live(state, NOW) is live


@pytest.mark.parametrize(
    ("until", "rests"),
    [
        (None, False),
        (timedelta(0), False),
        (timedelta(seconds=2), True),
        (LONGEST_PAUSE, True),
        (timedelta(days=3), False),
    ],
)
def test_a_pause_of_a_clock_that_was_ahead_is_over(until, rests):
    due = Due(NOW, 7, Tries(), None if until is None else NOW + until)
    assert due.rests(7, NOW) is rests
    assert due.rests(8, NOW) is False


def test_no_lease_may_be_set_longer_than_one_is_believed():
    with pytest.raises(ValueError, match="lease_seconds"):
        Settings(lease_seconds=600)
