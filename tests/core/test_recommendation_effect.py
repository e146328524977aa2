"""The effect of applied reviews: verdicts over their edges, and the interval."""

import pytest

from cardsync.recommendations.effect import Pair, effect_of


def pairs(count, brought, alone, sold=True):
    return [Pair(brought + at, sold, [alone, alone], 2 if alone else 0) for at in range(count)]


@pytest.mark.parametrize(
    ("brought", "alone", "verdict"),
    [(20_000, 10_000, "more"), (10_000, 20_000, "less"), (10_000, 10_005, "no_difference")],
)
def test_an_interval_that_leaves_zero_out_is_a_verdict(brought, alone, verdict):
    found = effect_of(pairs(12, brought, alone))
    assert found.verdict == verdict
    assert found.low < found.difference < found.high
    assert (found.cards, found.control_cards) == (12, 24)


def test_the_interval_is_that_of_the_differences():
    # The differences are 0 to 9: mean 4.5, spread 3.0277, half of the interval 1.8766.
    found = effect_of(pairs(10, 0, 0))
    assert (found.net, found.control) == (4, 0)
    assert (found.low, found.high) == (3, 6)


def test_few_cards_or_few_sales_say_nothing():
    few = effect_of(pairs(9, 20_000, 10_000))
    assert (few.verdict, few.net, few.difference, few.low) == (
        "not_enough_sales",
        20_004,
        None,
        None,
    )
    unsold = effect_of([Pair(0, False, [0], 0)] * 50)
    assert unsold.verdict == "not_enough_sales"


def test_a_card_without_matches_is_left_out():
    found = effect_of([Pair(10_000, True, [], 0)] * 20)
    assert (found.verdict, found.cards, found.net) == ("not_enough_sales", 0, None)
    assert effect_of([]).verdict == "not_enough_sales"
