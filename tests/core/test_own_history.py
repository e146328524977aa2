"""The market prices of a seller's own uploads, as a table: observations and the days of uploads in;
the verdict and the missed days out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cardsync.catalog.market.verdicts import Price
from cardsync.prices.recommendations.own_history import history_of

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def ago(days: int, hours: int = 0) -> datetime:
    return NOW - timedelta(days=days, hours=hours)


def days(*without: int, since: int = 30) -> set:
    return {ago(day).date() for day in range(since + 1) if day not in without}


STABLE = [Price(ago(40), 10_000)]
CASES = [
    # A price that rose four days ago and stayed has lasted.
    ([*STABLE, Price(ago(4), 14_000)], days(), "spike", 0),
    ([*STABLE, Price(ago(2), 13_000)], days(), "spike", 0),
    ([*STABLE, Price(ago(2), 12_999)], days(), "no_spike", 0),
    # Two days are not three.
    ([*STABLE, Price(ago(1), 14_000)], days(), "one_day", 0),
    ([*STABLE, Price(ago(0, 1), 14_000)], days(), "one_day", 0),
    # A leap that went back is over.
    ([*STABLE, Price(ago(3), 14_000), Price(ago(1), 10_000)], days(), "no_spike", 0),
    # A day without an upload shows nothing, though the price held.
    ([*STABLE, Price(ago(4), 14_000)], days(1), "unknown", 1),
    ([*STABLE, Price(ago(4), 14_000)], days(8, 9, 10), "spike", 3),
    (STABLE, days(since=8), "too_few_days", 0),
    ([], days(), "too_few_days", 0),
    ([Price(ago(30 - n), 10_000 + n % 2 * 9_000) for n in range(30)], days(), "unstable", 0),
    # A blank market price is no price.
    ([*STABLE, Price(ago(5), 0)], days(), "unknown", 0),
]


@pytest.mark.parametrize(("seen", "uploaded", "code", "missed"), CASES)
def test_a_history_has_its_verdict(seen, uploaded, code, missed):
    history = history_of(seen, uploaded, NOW)
    assert history.verdict.code == code
    assert len(history.missed) == missed
    assert history.is_a_leap == (code == "one_day")


def test_the_missed_days_are_told_with_their_ends():
    told = history_of(STABLE, days(8, 9, 12), NOW).as_evidence()
    assert (told["days"], told["days_missed"]) == (28, 3)
    assert (told["missed_from"], told["missed_to"]) == ("2026-11-11", "2026-11-15")
    assert told["median_60d"] == "1.00"


def test_days_before_the_first_observation_are_not_missed():
    told = history_of([Price(ago(5), 10_000)], days(since=50), NOW).as_evidence()
    assert (told["days"], told["days_missed"]) == (6, 0)


def daily(price: int, *of: int) -> dict:
    return {ago(day).date(): price for day in of}


@pytest.mark.parametrize(
    ("uploaded", "others", "code", "told", "missed"),
    [
        # One upload, and a month of daily prices: the upload's price leapt today.
        ({NOW.date()}, daily(10_000, *range(1, 31)), "one_day", (1, 30), 0),
        # It has been there for three days, as the daily prices show.
        (
            {NOW.date()},
            daily(14_000, 1, 2) | daily(10_000, *range(3, 31)),
            "spike",
            (1, 30),
            0,
        ),
        # On a day with an upload the own price counts.
        (days(), daily(99_000, *range(31)), "one_day", (31, 0), 0),
        # A day without either is missed; what is older than sixty days does not count.
        ({NOW.date()}, daily(10_000, *range(2, 31), 61, 90), "unknown", (1, 29), 1),
    ],
)
def test_a_daily_price_stands_in_for_a_day_without_an_upload(uploaded, others, code, told, missed):
    seen = [*STABLE, Price(ago(0, 1), 14_000)]
    history = history_of(seen, uploaded, NOW, others)
    assert (history.verdict.code, (history.days, history.daily)) == (code, told)
    assert history.as_evidence()["days_from_daily_prices"] == told[1]
    assert len(history.missed) == missed
