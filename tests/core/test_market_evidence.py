"""Verdicts on market evidence, with the clock moved over every edge."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.market.verdicts import (
    BUY_OUT_WINDOW,
    SALES_FETCHED,
    Cell,
    Price,
    Sale,
    Supply,
    age_of,
    buy_out,
    clearing,
    freshness,
    in_buy_out_window,
    median,
    spike,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
OWN = Cell("NM", "Normal", "English")
OTHER = Cell("LP", "Normal", "English")


def hours(count: float) -> timedelta:
    return timedelta(hours=count)


def days(count: float) -> timedelta:
    return timedelta(days=count)


def sale(ago: timedelta, price: int = 10_000, quantity: int = 1, cell: Cell = OWN) -> Sale:
    return Sale(NOW - ago, price, quantity, cell)


def supply(ago: timedelta, copies: int, listings: int | None = None) -> Supply:
    count = copies if listings is None else listings
    return Supply(NOW - ago, count, copies, 9_000 if copies else None)


@pytest.mark.parametrize(
    ("ago", "age"),
    [
        (hours(0), "fresh"),
        (hours(24) - TICK, "fresh"),
        (hours(24), "fresh"),
        (hours(24) + TICK, "expired"),
        (-TICK, "future"),
        (None, "unknown"),
    ],
)
def test_an_observation_is_fresh_up_to_its_edge(ago, age):
    observed = None if ago is None else NOW - ago
    assert age_of(observed, NOW, SALES_FETCHED) == age
    verdict = freshness("It", observed, NOW, SALES_FETCHED)
    assert verdict.code == age
    assert verdict.reason.endswith(".")
    assert verdict.holds is {"fresh": True, "expired": False}.get(age)


@pytest.mark.parametrize(
    ("ago", "seen"),
    [
        (hours(4) - TICK, True),
        (hours(4), True),
        (hours(4) + TICK, False),
        (-TICK, False),
        (None, False),
    ],
)
def test_a_buy_out_is_recent_for_four_hours(ago, seen):
    assert in_buy_out_window(None if ago is None else NOW - ago, NOW) is seen


FALL = [supply(hours(30), 40), supply(hours(20), 40), supply(hours(3), 8)]


@pytest.mark.parametrize(
    ("seen", "sold", "code", "detected"),
    [
        # Four fifths, exactly, and one copy fewer.
        (FALL, [sale(hours(5))], "bought_out", hours(3)),
        ([*FALL[:2], supply(hours(3), 9)], [sale(hours(5))], "no_fall", None),
        # Ten copies, exactly, and one fewer.
        ([supply(hours(20), 10), supply(hours(3), 2)], [sale(hours(5))], "bought_out", hours(3)),
        ([supply(hours(20), 9), supply(hours(3), 0)], [sale(hours(5))], "no_fall", None),
        # A day, exactly, and a moment more.
        ([supply(hours(27), 50), supply(hours(3), 0)], [sale(hours(5))], "bought_out", hours(3)),
        ([supply(hours(27) + TICK, 50), supply(hours(3), 0)], [sale(hours(5))], "no_fall", None),
        # Without sales, or with sales at another time, listings were only taken down.
        (FALL, [], "no_sales", None),
        (FALL, [sale(hours(2))], "no_sales", None),
        (FALL, [sale(hours(31))], "no_sales", None),
        (FALL, [sale(hours(3))], "bought_out", hours(3)),
        # The first observation that showed it counts, and a return ends it.
        ([*FALL, supply(hours(1), 4)], [sale(hours(5))], "bought_out", hours(3)),
        ([*FALL, supply(hours(1), 30)], [sale(hours(5))], "no_fall", None),
        # One observation, or one of the future, is no series.
        ([supply(hours(3), 8)], [sale(hours(5))], "unknown", None),
        ([supply(hours(3), 40), supply(-TICK, 0)], [sale(hours(2))], "unknown", None),
    ],
)
def test_a_buy_out_is_a_fast_fall_with_sales_that_did_not_return(seen, sold, code, detected):
    found = buy_out(seen, sold, NOW)
    assert found.code == code
    assert found.detected_at == (None if detected is None else NOW - detected)


def prices(last: list[int], base: int = 10_000, swing: int = 0, count: int = 30) -> list[Price]:
    before = [
        Price(NOW - days(day), base + (swing if day % 2 else -swing)) for day in range(3, 3 + count)
    ]
    return before + [Price(NOW - days(day), price) for day, price in enumerate(last)]


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (prices([13_000, 13_000, 13_000]), "spike"),
        (prices([13_000, 13_000, 12_999]), "no_spike"),
        (prices([40_000, 10_000, 10_000]), "no_spike"),
        (prices([13_000, 13_000]), "unknown"),
        (prices([13_000] * 3, swing=1_000), "spike"),
        (prices([13_000] * 3, swing=1_001), "unstable"),
        (prices([13_000] * 3, count=9), "too_few_days"),
        (prices([13_000] * 3, count=10), "spike"),
        (prices([0, 0, 0]), "unknown"),
        ([], "too_few_days"),
    ],
)
def test_a_spike_stands_above_a_stable_median_for_days(seen, code):
    found = spike(seen, NOW)
    assert found.code == code
    assert (found.holds is None) == (code in ("unknown", "unstable", "too_few_days"))


@pytest.mark.parametrize(
    ("sold", "fetched", "units"),
    [
        ([sale(days(1), quantity=3), sale(days(2), cell=OTHER)], hours(1), 3),
        ([sale(days(30))], hours(1), 1),
        ([sale(days(30) + TICK)], hours(1), 0),
        ([sale(-TICK)], hours(1), 0),
        ([sale(days(1))], hours(24), 1),
        ([sale(days(1))], hours(24) + TICK, None),
        ([sale(days(1))], -TICK, None),
        ([sale(days(1))], None, None),
        # The sample is the product's latest 25 sales, whatever their condition.
        ([sale(hours(at), cell=OTHER) for at in range(24)] + [sale(days(9))], hours(1), 1),
        ([sale(hours(at), cell=OTHER) for at in range(25)] + [sale(days(9))], hours(1), 0),
    ],
)
def test_clearing_counts_units_in_the_products_latest_sales(sold, fetched, units):
    found = clearing(sold, OWN, None if fetched is None else NOW - fetched, NOW)
    assert found.units == units
    assert found.reason.endswith(".")


AGO = st.integers(-3_600, 90 * 86_400).map(lambda seconds: timedelta(seconds=seconds))
SALES = st.lists(
    st.builds(sale, AGO, st.integers(1, 10**8), st.integers(1, 9), st.sampled_from([OWN, OTHER])),
    max_size=40,
)
SUPPLIES = st.lists(st.builds(supply, AGO, st.integers(0, 60)), max_size=12)


@given(SALES, st.none() | AGO)
def test_without_fresh_evidence_there_is_no_figure(sold, ago):
    fetched = None if ago is None else NOW - ago
    usable = age_of(fetched, NOW, SALES_FETCHED) == "fresh"
    assert (clearing(sold, OWN, fetched, NOW).units is not None) == usable


@given(SUPPLIES, SALES)
def test_a_buy_out_was_observed_and_the_supply_is_still_gone(seen, sold):
    found = buy_out(seen, sold, NOW)
    assert found == buy_out(seen[::-1], sold[::-1], NOW)
    if found.holds:
        assert found.detected_at in [one.observed_at for one in seen]
        assert found.detected_at <= NOW
        assert sold
        past = [one for one in seen if one.observed_at <= NOW]
        assert max(past).copies * 5 <= max(one.copies for one in past)
        assert not in_buy_out_window(found.detected_at, found.detected_at + BUY_OUT_WINDOW + TICK)


@given(st.lists(st.integers(1, 10**9), min_size=1))
def test_the_median_lies_between_the_extremes_and_ignores_the_order(values):
    assert min(values) <= median(values) <= max(values)
    assert median(values) == median(values[::-1])
