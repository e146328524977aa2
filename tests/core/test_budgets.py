"""What is used of the loss limits, from the moves of the last week and the present prices."""

import polars as pl
import pytest

from cardsync.prices.loss.loss_limits import PAST
from cardsync.prices.plans.budgets import Used, used_of

NOTHING = Used(0, 0, 0, 0, 700)


def card(price, quantity=1, **moved):
    """`moved` names a span; the move is one of today's price and of the worst."""
    sides = {f"{span}_{side}": by for span, by in moved.items() for side in ("today", "worst")}
    return dict.fromkeys(PAST, 0) | sides | {"id": 1, "quantity": quantity, "price": price}


def past(*cards):
    return pl.DataFrame(list(cards), schema={**PAST, "price": pl.Int64})


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ([], NOTHING),
        ([card(100_000)], NOTHING),
        # Ten dollars that were eleven, two copies.
        (
            [card(100_000, 2, hour=-10_000, day=-10_000, week=-10_000)],
            Used(909, 909, 909, 20_000, 700),
        ),
        # A rise uses the card's limit, and neither the value nor the budget.
        ([card(110_000, 1, hour=10_000, day=10_000, week=10_000)], Used(1000, 1000, 0, 0, 700)),
        # A cheap card has no limit of its own, and counts in the sums.
        ([card(5_000, 1, hour=-5_000, day=-5_000, week=-5_000)], Used(0, 0, 5000, 5_000, 700)),
        # What is out of stock lost nothing.
        ([card(100_000, 0, week=-50_000)], NOTHING),
        # The day's fall is over the hour's.
        ([card(90_000, 1, day=-10_000, week=-10_000)], Used(0, 1000, 0, 10_000, 700)),
    ],
)
def test_what_is_used_is_summed_by_its_span(cards, expected):
    assert used_of(past(*cards), 700) == expected


def test_the_worst_side_counts():
    one = card(100_000, week=-10_000) | {"week_worst": -30_000}
    assert used_of(past(one), 700).week_units == 30_000
