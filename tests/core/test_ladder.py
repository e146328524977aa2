"""One card's prices on one scale: where each is, and which labels have to give way."""

from __future__ import annotations

import itertools
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.dashboard.ladder import fall_of, ladder_of
from cardsync.prices.receipts.in_short import InShort, Move


def a_card(price="131.40", target="145.99", market="153.60", low="124.90"):
    return SimpleNamespace(price=price, target_price=target, market_price=market, low_price=low)


def bounds(floor=None, ceiling=None, hard_floor=None, cap=None):
    return [
        {"name": "bounds", "floor": floor, "ceiling": ceiling, "hard_floor": hard_floor},
        {"name": "cap", "seller_limit": cap},
    ]


def share(text):
    return Decimal(text.removesuffix("%"))


def test_the_prices_are_in_their_order_and_what_is_far_is_at_the_end():
    found = ladder_of(a_card(), bounds(floor="45.00", hard_floor="2.00", ceiling="160.00"))
    assert [(mark.name, mark.off) for mark in found.marks] == [
        ("Floor", "◂"), ("Low", ""), ("Price", ""), ("Target", ""), ("Market", ""), ("Ceiling", ""),
    ]  # fmt: skip
    places = [share(mark.x) for mark in found.marks]
    assert places == sorted(places)
    assert (places[0], places[1], places[-1]) == (0, 12, 88)
    at = {mark.name: mark.x for mark in found.marks}
    assert found.move == (at["Price"], at["Target"])
    assert found.span == ("0%", at["Ceiling"])


def test_the_higher_of_two_floors_binds_and_a_cap_is_there_only_if_it_limits():
    found = ladder_of(a_card(), bounds(floor="120.00", hard_floor="123.00", cap="150.00"))
    assert {mark.name: mark.amount for mark in found.marks if mark.kind == "stop"} == {
        "Floor": Decimal("123.00"), "Cap": Decimal("150.00"),
    }  # fmt: skip
    assert ladder_of(a_card(), []).span is None


def test_a_card_on_target_has_one_mark_for_both():
    found = ladder_of(a_card(target="131.40"), bounds())
    assert [mark.name for mark in found.marks] == ["Low", "Price and target", "Market"]
    assert found.move is None
    assert [mark.name for mark in ladder_of(a_card(target=None), []).marks] == [
        "Low", "Price", "Market",
    ]  # fmt: skip


@given(st.lists(st.decimals("0.01", "9999", places=4), min_size=1, max_size=6))
def test_the_steps_add_up_to_the_cent_and_stay_within_their_bars(prices):
    moves = [Move(f"step {n}", str(price)) for n, price in enumerate(prices)]
    steps = fall_of(InShort(moves, ""))
    assert steps[0].kind == "base"
    assert steps[0].price + sum(one.by for one in steps[1:]) == steps[-1].price
    assert steps[-1].price == round(steps[-1].price, 2)
    assert all(0 <= share(one.x) <= share(one.x) + share(one.width) <= 100 for one in steps)
    assert [one.decides for one in steps] == [False] * (len(steps) - 1) + [len(steps) > 1]


def test_a_card_without_a_price_has_no_steps():
    assert fall_of(None) == []
    assert fall_of(InShort([Move("Market", None)], "")) == []


@pytest.mark.parametrize("known", [{}, {"price": "1.00"}, {"market": "1.00"}])
def test_a_scale_needs_two_prices(known):
    none = dict.fromkeys(("price", "target", "market", "low"))
    assert ladder_of(a_card(**none | known), bounds(floor="0.50")) is None


@pytest.mark.parametrize(
    "card",
    [
        a_card("1.00", "1.01", "1.02", "1.00"),
        a_card("5.00", "5.00", "5.00", "5.00"),
        a_card("0.01", "900.00", "0.02", "0.03"),
    ],
)
def test_labels_keep_their_distance_and_stay_in_the_picture(card):
    found = ladder_of(card, bounds(floor="0.01", ceiling="1.00", cap="1.005"))
    for above in (True, False):
        places = sorted(share(mark.label_x) for mark in found.marks if mark.above is above)
        assert all(b - a >= 19 for a, b in itertools.pairwise(places))
        assert all(8 <= place <= 92 for place in places)
