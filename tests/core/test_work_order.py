"""The way through a pull session."""

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform.shelf_place import Place
from cardsync.sales.orders.work_order import ToPull, items_in_order, work_order


def nowhere(_item: int) -> None:
    return None


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        ([], []),
        ([ToPull(1, "pwe"), ToPull(2, "expedited"), ToPull(3, "tracked")], [2, 3, 1]),
        ([ToPull(1, "pigeon"), ToPull(2, "pwe")], [2, 1]),
        ([ToPull(1, "pwe", date(2026, 11, 3)), ToPull(2, "pwe", date(2026, 11, 2))], [2, 1]),
        ([ToPull(1, "pwe"), ToPull(2, "pwe", date(2026, 11, 2))], [2, 1]),
        ([ToPull(2, "pwe", date(2026, 11, 2)), ToPull(1, "pwe", date(2026, 11, 2))], [1, 2]),
        ([ToPull(1, "expedited", deferred_turn=0), ToPull(2, "pwe")], [2, 1]),
        (
            [
                ToPull(1, "pwe", deferred_turn=2),
                ToPull(2, "pwe", deferred_turn=1),
                ToPull(3, "pwe"),
            ],
            [3, 2, 1],
        ),
    ],
    ids=[
        "none",
        "priority",
        "unknown-last",
        "oldest",
        "undated-last",
        "by-id",
        "deferred-last",
        "deferred-by-turn",
    ],
)
def test_orders_stand_by_priority_then_age(orders, expected):
    assert work_order(orders, nowhere) == expected


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({1: Place(10, 1), 2: Place(9, 1)}, [2, 1]),
        ({1: Place(2, 10), 2: Place(2, 9)}, [2, 1]),
        ({2: Place(1000, 1000)}, [2, 1]),
        ({1: Place(1, 1), 2: Place(1, 1)}, [1, 2]),
    ],
    ids=["box-by-number", "slot-by-number", "unshelved-last", "same-place"],
)
def test_within_a_priority_orders_stand_by_box_and_slot(places, expected):
    orders = [ToPull(id, "pwe", date(2026, 11, 1), [id]) for id in (1, 2)]
    assert work_order(orders, places.get) == expected
    assert items_in_order([1, 2], places.get) == expected


def test_an_order_stands_where_its_first_item_lies():
    places = {11: Place(7, 1), 21: Place(8, 1), 22: Place(3, 5)}
    orders = [ToPull(1, "pwe", item_ids=[11]), ToPull(2, "pwe", item_ids=[21, 22, 23])]
    assert work_order(orders, places.get) == [2, 1]
    assert items_in_order([21, 22, 23], places.get) == [22, 21, 23]


def test_priority_goes_before_place():
    places = {1: Place(1, 1)}
    assert work_order([ToPull(1, "pwe", item_ids=[1]), ToPull(2, "tracked")], places.get) == [2, 1]


PLACES = st.dictionaries(
    st.integers(0, 20), st.builds(Place, st.integers(1, 30), st.integers(1, 30))
)
ORDERS = st.lists(
    st.builds(
        ToPull,
        order_id=st.integers(1, 10**6),
        shipping_type=st.sampled_from(["expedited", "tracked", "pwe"]),
        order_date=st.none() | st.dates(),
        item_ids=st.lists(st.integers(0, 20), max_size=4),
        deferred_turn=st.none() | st.integers(0, 5),
    ),
    unique_by=lambda order: order.order_id,
)


@given(ORDERS, PLACES, st.randoms())
def test_the_way_depends_on_the_orders_not_on_how_they_came(orders, places, random):
    way = work_order(orders, places.get)
    assert sorted(way) == sorted(order.order_id for order in orders)
    shuffled = list(orders)
    random.shuffle(shuffled)
    assert work_order(shuffled, places.get) == way


@given(ORDERS, PLACES)
def test_along_the_way_nothing_more_urgent_nearer_or_older_comes_later(orders, places):
    by_id = {order.order_id: order for order in orders}
    way = [by_id[id] for id in work_order(orders, places.get)]
    urgency = ["expedited", "tracked", "pwe"]
    for before, after in pairwise(way):
        assert (before.deferred_turn is None) >= (after.deferred_turn is None)
        if before.deferred_turn != after.deferred_turn:
            assert before.deferred_turn is None or before.deferred_turn < after.deferred_turn
            continue
        if before.shipping_type != after.shipping_type:
            assert urgency.index(before.shipping_type) < urgency.index(after.shipping_type)
            continue
        mine, theirs = (
            min((places[i] for i in order.item_ids if i in places), default=None)
            for order in (before, after)
        )
        if mine != theirs:
            assert theirs is None or (mine is not None and mine < theirs)
