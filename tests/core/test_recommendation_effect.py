"""The effect of applied reviews: verdicts over their edges, and the interval."""

import pytest

from cardsync.prices.recommendations.review_effect import Pair, effect_of


def pairs(count, brought, alone, sold=True):
    """Pairs with two matched cards each, all of them different ones."""
    cards = [frozenset({2 * at, 2 * at + 1}) for at in range(count)]
    return [
        Pair(brought + at, sold, dict.fromkeys(own, alone), own if alone else frozenset())
        for at, own in enumerate(cards)
    ]


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
    unsold = effect_of([Pair(0, False, {at: 0}, frozenset()) for at in range(50)])
    assert unsold.verdict == "not_enough_sales"


def test_a_card_without_matches_is_left_out():
    found = effect_of([Pair(10_000, True, {}, frozenset())] * 20)
    assert (found.verdict, found.cards, found.net) == ("not_enough_sales", 0, None)
    assert effect_of([]).verdict == "not_enough_sales"


def test_a_card_beside_many_counts_once_and_widens_the_interval():
    one = [Pair(20_000, True, {1: 10_000}, {1}) for _ in range(50)]
    assert (effect_of(one).verdict, effect_of(one).control_cards) == ("not_enough_sales", 1)
    alone = {at: 20_000 * (at % 2) for at in range(10)}
    same = effect_of([Pair(15_000, True, alone, set(alone)) for _ in range(50)])
    # Ten cards of 0.00 or 2.00 have a mean of 1.00, give or take 1.96 * 1.0541 / sqrt(10) = 0.6533.
    assert (same.difference, same.low, same.high) == (5_000, -1_533, 11_533)
    assert (same.verdict, same.control_sold) == ("no_difference", 10)
