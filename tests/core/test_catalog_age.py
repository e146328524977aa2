"""When an installed catalog is old, as doctor, the page and the notice say alike: a table of ages, and
properties of the troubles.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.catalog_age import Dated, is_late, is_old, old_at, troubles

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def of(age, game="magic", source="scryfall", failure=None):
    return Dated(game, source, None if age is None else NOW - age, None, failure)


@pytest.mark.parametrize(
    ("age", "renewal_days", "old", "late"),
    [
        (14 * DAY, 7, False, False),
        (14 * DAY + timedelta(seconds=1), 7, True, True),
        # A week at least: a source may be away for some nights.
        (7 * DAY, 1, False, False),
        (8 * DAY, 1, True, True),
        # Nothing renews it, and nobody asked for that: the page alone says so.
        (29 * DAY, 0, False, False),
        (31 * DAY, 0, True, False),
    ],
)
def test_a_catalog_is_old_once_two_renewals_have_failed(age, renewal_days, old, late):
    one = of(age)
    assert is_old(one.checked_at, NOW, renewal_days) is old
    assert is_late(one, NOW, renewal_days) is late


def test_what_was_never_installed_is_not_old():
    assert not is_late(of(None, failure="away"), NOW, 7)


ages = st.timedeltas(timedelta(0), timedelta(days=400))
found = st.lists(
    st.builds(
        of,
        st.none() | ages,
        st.sampled_from("abcd"),
        st.sampled_from("xyz"),
        st.none() | st.just("away"),
    )
)


@given(found, st.integers(0, 60))
def test_each_late_catalog_is_in_the_one_trouble_of_its_source(some, renewal_days):
    told = troubles(some, NOW, renewal_days)
    late = [one for one in some if is_late(one, NOW, renewal_days)]
    assert sorted((one.source, game) for one in told for game in one.games) == sorted(
        (one.source, one.game) for one in late
    )
    assert len({one.source for one in told}) == len(told)
    for one in told:
        own = [each for each in late if each.source == one.source]
        assert one.since == min(old_at(each.checked_at, renewal_days) for each in own)
        assert one.since < NOW
        failed = any(each.failure for each in own)
        assert one.reason == ("away" if failed else "no worker has looked for a newer one")
