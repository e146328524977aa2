"""The risk of plans, and what differs from the present, as tables."""

import pytest

from cardsync.prices.loss.risk import Size, risk_of
from cardsync.prices.plans.basis import drifted


@pytest.mark.parametrize(
    ("size", "risk"),
    [
        (Size(), "low"),
        (Size(cards=100, moved_bp=500), "low"),
        (Size(cards=100, moved_bp=501), "medium"),
        (Size(cards=100, moved_bp=1000), "medium"),
        (Size(cards=100, moved_bp=1001), "high"),
        (Size(cards=100, moved_bp=2000), "high"),
        (Size(cards=100, moved_bp=2001), "critical"),
        # The seller's own caps are the measure.
        (Size(cards=100, moved_bp=500, cap_bp=400), "critical"),
        (Size(cards=100, moved_bp=500, cap_bp=500), "high"),
        (Size(cards=100, moved_bp=500, cap_bp=1000), "medium"),
        (Size(cards=100, moved_bp=2001, cap_bp=9000), "low"),
        # Single cards that leap count, however small the whole is.
        (Size(cards=100, moved_bp=1, beyond=1), "medium"),
        (Size(cards=100, moved_bp=1, beyond=10), "medium"),
        (Size(cards=100, moved_bp=1, beyond=11), "high"),
        (Size(cards=1, moved_bp=1, beyond=1), "high"),
        (Size(deletes=True), "medium"),
        (Size(cards=100, moved_bp=2001, deletes=True), "critical"),
    ],
)
def test_a_change_is_measured_against_the_sellers_own_caps(size, risk):
    assert risk_of(size) == risk


EMPTY = {"rules": {}, "order": [], "pins": {}, "lists": {}}
RULE = {"5": {"name": "R", "floor": None}}


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ({}, {}, None),
        ({"rules": RULE}, {"rules": {"5": {"name": "R", "floor": "1.00"}}}, "floor was nothing"),
        ({"rules": RULE}, {}, "Rule 5 “R” is gone."),
        ({"order": [1, 2]}, {"order": [2, 1]}, "their order have changed"),
        (
            {"pins": {"7": None}},
            {"pins": {"7": "2.00"}},
            "was not pinned and is now pinned at 2.00",
        ),
        ({"lists": {"3": {"name": "A", "cards": 1}}}, {}, "List 3 “A” is gone."),
        ({}, {"lists": {"3": {"name": "A", "cards": 1}}}, "created in the meantime"),
        (
            {"lists": {"3": {"name": "A", "cards": 1}}},
            {"lists": {"3": {"name": "A", "cards": 2}}},
            "with 1 card and is now “A” with 2",
        ),
    ],
)
def test_what_a_plan_builds_on_is_told_where_it_differs(was, now, words):
    found = drifted(EMPTY | was, EMPTY | now, Size(), Size())
    assert bool(found) == (words is not None)
    assert words is None or any(words in line for line in found)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Size(cards=10, before=100_000, after=90_000), None),
        (Size(cards=10, before=100_900, after=90_000), None),
        (Size(cards=10, before=102_000, after=90_000), "listed value would change by -1.20"),
        (Size(cards=11, before=100_000, after=90_000), "11 cards"),
        (Size(cards=10, before=100_000, after=90_000, under_market=1), "under 1%"),
    ],
)
def test_a_change_of_another_size_is_drift(now, words):
    was = Size(cards=10, before=100_000, after=90_000)
    found = drifted(EMPTY, EMPTY, was, now)
    assert bool(found) == (words is not None)
    assert words is None or words in found[0]
