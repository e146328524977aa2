"""The risk of plans, their permission modes and their limits, as tables; properties of them."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.access.caller import Identity
from cardsync.prices.loss.loss_limits import Sums
from cardsync.prices.plans.basis import drifted
from cardsync.prices.plans.modes import DEFAULTS, answer, answer_of_all, credential_of
from cardsync.prices.plans.risk import Size, broken_limit, confirmation_of, risk_of

RISKS = ("low", "medium", "high", "critical")
MODES = ("deny", "always_ask", "ask_for_mutations", "auto_low_risk", "auto_unless_critical")


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


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("deny", ("refuse", "refuse", "refuse", "refuse")),
        ("always_ask", ("ask", "ask", "ask", "ask")),
        ("ask_for_mutations", ("ask", "ask", "ask", "ask")),
        ("auto_low_risk", ("apply", "ask", "ask", "ask")),
        ("auto_unless_critical", ("apply", "apply", "apply", "ask")),
    ],
)
def test_each_mode_answers_each_risk(mode, expected):
    assert tuple(answer(mode, risk, changes=True) for risk in RISKS) == expected


def test_a_plan_that_changes_nothing_asks_only_where_everything_asks():
    found = {mode: answer(mode, "low", changes=False) for mode in MODES}
    assert found == {
        "deny": "refuse",
        "always_ask": "ask",
        "ask_for_mutations": "apply",
        "auto_low_risk": "apply",
        "auto_unless_critical": "apply",
    }


@pytest.mark.parametrize(
    ("shown", "credential"), [("key", "key"), ("token", "token"), ("session", None)]
)
def test_a_credential_is_known_by_its_caller(shown, credential):
    caller = SimpleNamespace(identity=Identity(1, shown, 7))
    assert credential_of(caller) == credential


def test_a_key_does_what_is_of_low_risk_and_a_token_asks():
    expected = {"key": "apply", "token": "ask"}
    found = {name: answer(mode, "low", changes=True) for name, mode in DEFAULTS.items()}
    assert found == expected


@given(st.lists(st.sampled_from(MODES), min_size=1, max_size=3), st.sampled_from(RISKS))
def test_of_several_kinds_of_action_the_strictest_decides(modes, risk):
    answers = {answer(mode, risk, changes=True) for mode in modes}
    strictest = next(one for one in ("refuse", "ask", "apply") if one in answers)
    assert answer_of_all(modes, risk, changes=True) == strictest


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


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (Size(under_market=1, first_under_market=7), "card 7 would be priced under 1%"),
        (
            Size(under_market=2, first_under_market=7),
            "2 cards, card 7 among them, would be priced under 1%",
        ),
        (Size(sums=Sums(hour_cards=1, hour_first=7)), "card 7 would have moved by more than 20%"),
        (
            Size(sums=Sums(day_cards=1_200, day_first=7)),
            "1,200 cards, card 7 among them, would have moved by more than 30%",
        ),
    ],
)
def test_a_refusal_counts_cards_as_a_person_does(size, words):
    broken = broken_limit(size)
    assert broken is not None
    assert broken.error.startswith(words)


@pytest.mark.parametrize(
    ("cards", "words"),
    [
        (1, "1 card would change price, by -60%"),
        (2, "2 cards would change price, one of them by -60%"),
    ],
)
def test_so_does_a_confirmation(cards, words):
    asked = confirmation_of(Size(cards=cards, deepest_bp=6_000))
    assert str(asked.body()["error"]).startswith(words)
