"""The line of a card's market price over 30 days, from what was seen of it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cardsync.stock.cards.market_trend import DAYS, HEIGHT, WIDTH, trend_of


def points(trend):
    return [tuple(map(int, pair.split(","))) for pair in trend.points.split()]


def seen(*known):
    return [(ago, Decimal(price) if price else None) for ago, price in known]


@pytest.mark.parametrize(
    ("observed", "first", "last", "days"),
    [
        (seen((29, "1.00"), (0, "2.00")), "1.00", "2.00", 30),
        (seen((9, "1.00"), (3, "4.00")), "1.00", "4.00", 10),
        (seen((30, "1.00")), "1.00", "1.00", 30),
        (seen((400, "1.00"), (2, "3.00")), "1.00", "3.00", 30),
        (seen((9, None), (5, "2.00"), (1, None)), "2.00", "2.00", 6),
    ],
)
def test_a_day_without_a_price_has_the_one_before(observed, first, last, days):
    trend = trend_of(observed)
    assert (trend.first, trend.last) == (Decimal(first), Decimal(last))
    drawn = points(trend)
    assert len(drawn) == days <= DAYS
    assert drawn[-1][0] == WIDTH
    assert all(0 <= x <= WIDTH and 0 < y < HEIGHT for x, y in drawn)
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn)


def test_a_higher_price_is_higher_on_the_page():
    drawn = points(trend_of(seen((2, "1.00"), (1, "3.00"), (0, "2.00"))))
    assert [y for _, y in drawn] == [18, 2, 10]


@pytest.mark.parametrize("observed", [[], seen((3, None)), seen((0, "1.00"))])
def test_no_line_is_drawn_of_fewer_than_two_days(observed):
    assert trend_of(observed) is None
